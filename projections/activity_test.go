package projections_test

import (
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	activitymodel "humanqa/projections/activity"
	jobsmodel "humanqa/projections/jobs"
	projectsmodel "humanqa/projections/projects"
)

func TestWhatWasDoneInAnAccountIsListedWithItsAuthor(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, activitymodel.Projector, jobsmodel.Projector, projectsmodel.Projector)
	w.Run(w.Sup)
	reads := activitymodel.NewReads(w.DB)
	by := func(actor string) domain.Metadata { return domain.Metadata{Actor: actor, Time: modeltest.Noon} }
	test := domain.JobStream("j1")
	w.Log.RecordAs(by("key:k1"), domain.AccountStream("acme"), &account.KeyIssued{KeyID: "k2", Hash: "h2", Name: "CI"})
	w.Log.RecordAs(by("person:ada"), domain.ProjectStream("p1"), &project.Created{AccountID: "acme", Name: "Shop"})
	w.Log.RecordAs(by("operator:olga"), domain.ProjectStream("p1"), &project.SettingsChanged{Name: "The shop"})
	w.Log.RecordAs(by("hook:p1"), test, modeltest.Created("acme", func(e *job.Created) { e.ProjectID = "p1" }))
	w.Log.RecordAs(by("person:bea"), test, modeltest.Claimed("bea"), &job.SecretShown{Kind: job.SecretAccess, Claim: 1, Checker: "7F3A", At: modeltest.Noon})
	w.Log.RecordAs(by("person:ada"), test, &job.Rated{Rating: 4, At: modeltest.Noon})
	// A role elsewhere, and one of no account, are not the account's facts.
	w.Log.RecordAs(by("person:ada"), domain.PersonStream("bob"), &person.Invited{Grant: person.Grant{Role: person.Viewer, AccountID: "acme"}},
		&person.RoleGranted{Grant: person.Grant{Role: person.Owner, AccountID: "zeta"}},
		&person.RoleGranted{Grant: person.Grant{Role: person.Checker, CheckerID: "c9"}})
	w.Reach(w.Sup)

	list := func(accountID string, f activitymodel.Filter) (told []string) {
		f.Limit = max(f.Limit, 10)
		facts, err := reads.List(w.Ctx(), accountID, f)
		must.NoError(t, err)
		for _, one := range facts {
			told = append(told, one.Author+" "+one.Kind+" "+one.Detail)
		}
		return told
	}
	all := []string{
		"person:ada person.invited viewer", "person:ada job.rated 4", "checker:7F3A job.secret_shown access", "hook:p1 job.created ",
		"operator project.settings_changed ", "person:ada project.created ", "key:k1 account.key_issued key:k2",
	}
	for _, c := range []struct {
		f    activitymodel.Filter
		want []string
	}{
		{activitymodel.Filter{}, all},
		{activitymodel.Filter{ProjectID: "p1"}, all[1:6]},
		{activitymodel.Filter{Author: "person:ada"}, []string{all[0], all[1], all[5]}},
		{activitymodel.Filter{Kind: "job.secret_shown"}, all[2:3]},
		{activitymodel.Filter{Stream: test}, all[1:4]},
		{activitymodel.Filter{Offset: 5}, all[5:]},
	} {
		if got := list("acme", c.f); !slices.Equal(got, c.want) {
			t.Errorf("%+v lists %q\nwant %q", c.f, got, c.want)
		}
	}
	if got := list("zeta", activitymodel.Filter{}); !slices.Equal(got, []string{"person:ada person.role_granted owner"}) {
		t.Errorf("another account sees %q", got)
	}
	facts, err := reads.List(w.Ctx(), "acme", activitymodel.Filter{Stream: test, Limit: 1})
	if err != nil || len(facts) != 1 || facts[0].Title != "checkout" || facts[0].ProjectID != "p1" {
		t.Errorf("the fact is %+v, %v", facts, err)
	}
	w.Sound(w.Sup, "activity")
}
