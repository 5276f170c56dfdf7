package projections_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections"
)

func TestCommandsReadTheNewestProjectOfTheHost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	open := func(id, accountID, url string, minute int) {
		w.Log.Record(domain.ProjectStream(id), &project.Created{AccountID: accountID, Name: id, DefaultURL: &url, HookHash: id, At: *modeltest.At(minute)})
	}
	open("older", "acc", "https://www.App.example/old", 1)
	open("newer", "acc", "https://app.example:443/", 2)
	open("staging", "acc", "https://app.example:8443/", 3)
	open("theirs", "other", "https://app.example/", 4)
	w.Log.Record(domain.ProjectStream("bare"), &project.Created{AccountID: "acc", Name: "bare", HookHash: "bare", At: *modeltest.At(5)})
	w.Reach(w.Sup)
	n := projections.CommandReads{w.reads}
	find := func(host string) string {
		t.Helper()
		w.Reach(w.Sup)
		id, found, err := n.ProjectForHost(w.Ctx(), "acc", host)
		if err != nil || found != (id != "") {
			t.Fatalf("%q, %v, %v", id, found, err)
		}
		return id
	}
	for host, want := range map[string]string{"app.example": "newer", "app.example:8443": "staging", "other.example": "", "": ""} {
		if got := find(host); got != want {
			t.Errorf("%q leads to %q, want %q", host, got, want)
		}
	}
	w.Log.Record(domain.ProjectStream("newer"), &project.SettingsChanged{Name: "newer", At: *modeltest.At(6)}) // without a URL
	if got := find("app.example"); got != "older" {
		t.Errorf("a cleared URL still leads to %q", got)
	}
	w.Sound(w.Sup, "projects")
}

func TestCommandsReadWhatWasTestedAndWhatFailed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.Run(p.Sup)
	p.Log.Record(domain.ProjectStream("p1"), &project.Created{AccountID: "acc", Name: "shop", HookHash: "h1", At: modeltest.Noon})
	n := projections.CommandReads{p.reads}
	tested := func(accountID string) bool {
		t.Helper()
		p.Reach(p.Sup)
		yes, err := n.Tested(p.Ctx(), accountID, "p1")
		must.NoError(t, err)
		return yes
	}
	if tested("acc") {
		t.Error("tested before its first job")
	}
	p.Log.Record(domain.JobStream("j1"), modeltest.Created("acc", func(e *job.Created) { e.ProjectID = "p1" }))
	if !tested("acc") || tested("other") {
		t.Error("a job makes its project a tested one, for its account")
	}
	p.Log.Record(domain.JobStream("j1"), modeltest.Claimed("ann"), modeltest.Results("j1", 1, "x=fail", "y=pass", "z=fail"))
	p.Reach(p.Sup)
	failures, err := n.OpenFailures(p.Ctx(), "acc", "p1", 1)
	must.NoError(t, err)
	modeltest.Same(t, failures, []command.Regression{{
		Item:     job.Item{Key: "x", Description: "X", ExpectedOutcome: "it works", Severity: job.Critical},
		FailedAt: *modeltest.At(1),
	}})
	if failures, err := n.OpenFailures(p.Ctx(), "other", "p1", 9); err != nil || len(failures) > 0 {
		t.Errorf("another account nominates %+v, %v", failures, err)
	}
}
