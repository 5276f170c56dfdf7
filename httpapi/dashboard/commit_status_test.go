package dashboard_test

import (
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/commandtest"
)

// The page says which commit gets the verdict, and what the code host has, without a reload.
func TestATestShowsItsCommitStatus(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ours := w.account("Acme", 100)
	owner := w.Joined("Olive", person.Grant{Role: person.Owner, AccountID: ours})
	const commit = "1b4f0e9851971998e732078544c96b36c3d01ced"
	test := func(token string) string {
		return w.test(ours, "Sign-up", func(in *command.SubmitJob) {
			in.CommitStatus = &command.CommitStatus{Token: token, CommitStatus: job.CommitStatus{
				Provider: job.GitHub, Repository: "acme/shop", Commit: commit, Context: "Human <b>QA</b>", FailOn: "minor",
			}}
		})
	}
	tell := func(id string) {
		t.Helper()
		at, err := w.Commands.TellCommit(t.Context(), w.cause(ours), id)
		w.Shown(at, err)
	}
	shows := func(id, words string) {
		t.Helper()
		got := w.Call(owner, "GET", "/dashboard/jobs/"+id, nil).Body
		line := got[strings.Index(got, `id="commit-status"`)+1:]
		line, _, _ = strings.Cut(line, "</dd>")
		for _, part := range []string{"Human &lt;b&gt;QA&lt;/b&gt; at ", commit, ">1b4f0e9", "of acme/shop: " + words} {
			if !strings.Contains(line, part) {
				t.Errorf("without %q: %s", part, line)
			}
		}
	}
	if got := w.Call(owner, "GET", "/dashboard/jobs/"+w.test(ours, "Plain", nil), nil).Body; strings.Contains(got, "commit-status") {
		t.Error("a test without a commit status shows one")
	}

	told := test("statuses-only")
	tab := w.Tab(owner)
	tab.Open(w.Origin + "/dashboard/jobs/" + told)
	tab.WaitText("not set yet")
	tell(told)
	tab.WaitText("set to pending until the test ends") // by itself
	_, err := w.Commands.CancelJob(t.Context(), w.cause(ours), told, job.CancelClient)
	w.Must(err)
	tell(told)
	shows(told, "set to error, since no verdict comes; the token is deleted.")

	refused := test(commandtest.RefusedToken)
	tell(refused)
	shows(refused, "never set. The code host refused the commit status: the token is unknown or expired (401).")

	forgotten := test("statuses-only")
	tell(forgotten)
	_, err = w.DB.ExecContext(t.Context(), "DELETE FROM vault.held")
	w.Must(err)
	_, err = w.Commands.CancelJob(t.Context(), w.cause(ours), forgotten, job.CancelClient)
	w.Must(err)
	tell(forgotten)
	shows(forgotten, "it stays at pending. The token is forgotten.")
}
