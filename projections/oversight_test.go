package projections_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/oversight"
	"humanqa/internal/testing/modeltest"
	oversightmodel "humanqa/projections/oversight"
)

func TestWhatOperatorsDidIsListed(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, oversightmodel.Projector)
	w.Run(w.Sup)
	reads := oversightmodel.NewReads(w.DB)
	look := oversight.Acted{ActID: "a1", PersonID: "ann", Act: oversight.Look, Subject: "job-1", AccountID: "acme", Reason: "They asked"}
	grant := oversight.Acted{ActID: "a2", PersonID: "bob", Act: oversight.GrantCredits, Subject: "credits-acme", AccountID: "acme", Detail: "5 credits", Reason: "Sorry"}
	w.Log.Record(domain.OperatorStream("ann"), &look)
	w.Log.Record(domain.OperatorStream("bob"), &grant, &oversight.Refused{ActID: "a2", Problem: "no"})
	w.Reach(w.Sup)
	all, total, err := reads.Acts(w.Ctx(), oversightmodel.Filter{Limit: 10})
	if err != nil || total != 2 || len(all) != 2 || all[0].ID != "a2" || all[0].Problem != "no" || all[1].Reason != "They asked" {
		t.Errorf("the acts are %+v, %d, %v", all, total, err)
	}
	for _, f := range []oversightmodel.Filter{{PersonID: "ann", Limit: 10}, {Act: oversight.Look, Limit: 10}, {AccountID: "acme", Act: oversight.Look, Limit: 10}} {
		if some, total, err := reads.Acts(w.Ctx(), f); err != nil || total != 1 || some[0].ID != "a1" {
			t.Errorf("%+v: %+v, %v", f, some, err)
		}
	}
	before, after := time.Time{}.Add(-time.Hour), time.Time{}.Add(time.Hour) // the log of these tests knows no time
	if looks, err := reads.Looks(w.Ctx(), "acme", before, 10); err != nil || len(looks) != 1 || looks[0].ID != "a1" {
		t.Errorf("the looks are %+v, %v", looks, err)
	}
	if looks, err := reads.Looks(w.Ctx(), "zeta", before, 10); err != nil || len(looks) != 0 {
		t.Errorf("another account sees %+v, %v", looks, err)
	}
	for _, c := range []struct {
		person, stream string
		since          time.Time
		looked         bool
	}{{"ann", "job-1", before, true}, {"ann", "job-1", after, false}, {"bob", "job-1", before, false}, {"ann", "job-2", before, false}} {
		if looked, err := reads.Looked(w.Ctx(), c.person, c.stream, c.since); err != nil || looked != c.looked {
			t.Errorf("%+v: %v, %v", c, looked, err)
		}
	}
	w.Sound(w.Sup, "oversight")
}
