package projections_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/pool"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/jobs"
	"humanqa/projections/people"
	"humanqa/projections/pools"
)

// Decisions, "Pools": the queue shows a checker what they may claim, and no more.
func TestAQueueOfThoseWhoAreTrusted(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, pools.Projector, jobs.Projector, access.Projector, people.Projector)
	w.Run(w.Sup)
	reads, queue := pools.NewReads(w.DB), jobs.NewReads(w.DB)
	w.Log.Record(domain.JobStream("j1"), modeltest.Created("acme"))
	w.Log.Record(domain.JobStream("j2"), modeltest.Created("zeta"))
	w.Log.Record(domain.PoolStream("p1"), &pool.Created{Name: "Banking"}, &pool.CheckerAdded{CheckerID: "ann"}, &pool.CheckerAdded{CheckerID: "bob"}, &pool.CheckerRemoved{CheckerID: "bob"})
	w.Log.Record(domain.PoolStream("p2"), &pool.Created{Name: "Acme's own", AccountID: "acme"})
	w.Log.Record(domain.AccountStream("acme"), &account.PoolChosen{PoolID: "p1"})
	w.Log.Record(domain.CheckerStream("ann"), &checker.Profiled{Languages: []string{"English"}, Devices: []string{"Pixel 9"}})
	shown := func(checkerID string) (ids []string) {
		t.Helper()
		w.Reach(w.Sup)
		list, err := queue.Queue(w.Ctx(), jobs.QueueFilter{CheckerID: checkerID, Limit: 10})
		must.NoError(t, err)
		for _, j := range list {
			ids = append(ids, j.ID)
		}
		next, found, err := queue.NextForChecker(w.Ctx(), checkerID, modeltest.Noon, nil)
		if err != nil || found != (len(ids) > 0) || found && next != ids[0] {
			t.Errorf("%s is given %s of %v: %v", checkerID, next, ids, err)
		}
		return ids
	}
	modeltest.Same(t, shown("ann"), []string{"j1", "j2"})
	modeltest.Same(t, shown("bob"), []string{"j2"})

	list, err := reads.Pools(w.Ctx())
	must.NoError(t, err)
	modeltest.Same(t, list, []pools.Pool{{ID: "p2", Name: "Acme's own", AccountID: "acme"}, {ID: "p1", Name: "Banking", Checkers: 1, Accounts: 1}})
	if p, found, err := reads.OfAccount(w.Ctx(), "acme"); err != nil || !found || p.ID != "p1" {
		t.Errorf("acme is kept to %+v, %v", p, err)
	}
	if p, err := reads.Profile(w.Ctx(), "ann"); err != nil || p.Languages[0] != "English" || p.Devices[0] != "Pixel 9" {
		t.Errorf("ann is %+v, %v", p, err)
	}

	w.Log.Record(domain.AccountStream("acme"), &account.PoolChosen{})
	modeltest.Same(t, shown("bob"), []string{"j1", "j2"})
	if _, found, err := reads.OfAccount(w.Ctx(), "acme"); err != nil || found {
		t.Errorf("acme is still kept to a pool: %v", err)
	}
	w.Sound(w.Sup, "pools")
}
