package projections_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/access"
	"humanqa/projections/jobs"
	"humanqa/projections/people"
	"humanqa/projections/pools"
	"humanqa/projections/projects"
)

func TestPeopleAreShownWithTheirRoles(t *testing.T) {
	t.Parallel()
	w := setup(t, people.Projector, access.Projector, jobs.Projector, projects.Projector, pools.Projector)
	w.Run(w.Sup)
	owner := person.Grant{Role: person.Owner, AccountID: "acme"}
	viewer := person.Grant{Role: person.Viewer, AccountID: "acme"}
	elsewhere := person.Grant{Role: person.Developer, AccountID: "zeta"}
	tester := person.Grant{Role: person.Checker, CheckerID: "ann"}
	operator := person.Grant{Role: person.Operator}
	w.Log.Record(domain.AccountStream("acme"), &account.Created{Name: "Acme"}, &account.Suspended{})
	w.Log.Record(domain.AccountStream("zeta"), &account.Created{Name: "Zeta", Sandbox: true})
	w.Log.Record(domain.PersonStream("p1"), &person.Invited{Grant: viewer}, &person.Joined{},
		&person.RoleGranted{Grant: owner}, &person.RoleGranted{Grant: elsewhere}, &person.RoleGranted{Grant: tester})
	w.Log.Record(domain.PersonStream("p2"), &person.Invited{Grant: viewer})
	w.Log.Record(domain.PersonStream("p3"), &person.Invited{Grant: viewer}, &person.Disabled{Reason: "left"})
	w.Log.Record(domain.PersonStream("p4"), &person.Invited{Grant: viewer}, &person.RoleRevoked{Grant: viewer})
	w.Reach(w.Sup)

	acme := people.Account{ID: "acme", Name: "Acme", Suspended: true}
	zeta := people.Account{ID: "zeta", Name: "Zeta", Sandbox: true}
	at := time.Time{}.UTC() // the log of these tests knows no time
	got, err := w.reads.People.Person(w.Ctx(), "p1")
	must.NoError(t, err)
	modeltest.Same(t, got, people.Person{ID: "p1", InvitedAt: at, JoinedAt: &at, Roles: []people.PersonRole{
		{Grant: owner, Account: acme}, {Grant: elsewhere, Account: zeta}, {Grant: tester},
	}})
	members, err := w.reads.People.Members(w.Ctx(), "acme")
	must.NoError(t, err)
	modeltest.Same(t, members, []people.Person{
		{ID: "p1", InvitedAt: at, JoinedAt: &at, Roles: []people.PersonRole{{Grant: owner, Account: acme}}},
		{ID: "p2", InvitedAt: at, Roles: []people.PersonRole{{Grant: viewer, Account: acme}}},
	})
	if p, err := w.reads.People.Person(w.Ctx(), "p4"); err != nil || len(p.Roles) != 0 {
		t.Errorf("without a role: %+v, %v", p, err)
	}
	if _, err := w.reads.People.Person(w.Ctx(), "p5"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("nobody: %v", err)
	}

	anyOperator := func() (invited, joined bool) {
		t.Helper()
		w.Reach(w.Sup)
		invited, err := w.reads.People.AnyOperator(w.Ctx(), false)
		must.NoError(t, err)
		if joined, err = w.reads.People.AnyOperator(w.Ctx(), true); err != nil {
			t.Fatal(err)
		}
		return invited, joined
	}
	if invited, joined := anyOperator(); invited || joined {
		t.Errorf("without an operator: %v, %v", invited, joined)
	}
	w.Log.Record(domain.PersonStream("p6"), &person.Invited{Grant: operator})
	if invited, joined := anyOperator(); !invited || joined {
		t.Errorf("with an invited operator: %v, %v", invited, joined)
	}
	w.Log.Record(domain.PersonStream("p6"), &person.Joined{})
	if invited, joined := anyOperator(); !invited || !joined {
		t.Errorf("with an operator: %v, %v", invited, joined)
	}
	w.Log.Record(domain.PersonStream("p6"), &person.Disabled{})
	if invited, joined := anyOperator(); invited || joined {
		t.Errorf("with a disabled operator: %v, %v", invited, joined)
	}
	w.Sound(w.Sup, "people")
}

func TestTheQueueHidesTheJobsOfAPersonsOwnAccounts(t *testing.T) {
	t.Parallel()
	w := setup(t, people.Projector, access.Projector, jobs.Projector, projects.Projector, pools.Projector)
	w.Run(w.Sup)
	item := []job.Item{{ID: "item-1", Key: "k", Description: "d", Severity: job.Major}}
	w.Log.Record(domain.CheckerStream("ann"), &checker.Created{Name: "Ann", Hash: "h"}, &checker.Bound{PersonID: "p1"})
	w.Log.Record(domain.PersonStream("p1"), &person.Invited{Grant: person.Grant{Role: person.Checker, CheckerID: "ann"}})
	w.Log.Record(domain.JobStream("j1"), &job.Created{Submission: job.Submission{AccountID: "acme", Title: "t", URL: "u", Type: job.Custom}, Items: item, CreatedAt: modeltest.Noon})
	queue := func(checkerID string) int {
		t.Helper()
		w.Reach(w.Sup)
		queue, err := jobs.NewReads(w.DB).Queue(w.Ctx(), jobs.QueueFilter{CheckerID: checkerID, Limit: 5})
		must.NoError(t, err)
		_, ok, err := jobs.NewReads(w.DB).NextForChecker(w.Ctx(), checkerID, modeltest.Noon, nil)
		if err != nil || ok != (len(queue) > 0) {
			t.Errorf("the queue has %d jobs, the next one: %v, %v", len(queue), ok, err)
		}
		return len(queue)
	}
	if n := queue("ann"); n != 1 {
		t.Fatalf("a stranger sees %d jobs", n)
	}
	w.Log.Record(domain.PersonStream("p1"), &person.RoleGranted{Grant: person.Grant{Role: person.Viewer, AccountID: "acme"}})
	if n := queue("ann"); n != 0 {
		t.Errorf("a member sees %d jobs", n)
	}
	if n := queue("bob"); n != 1 {
		t.Errorf("another checker sees %d jobs", n)
	}
}
