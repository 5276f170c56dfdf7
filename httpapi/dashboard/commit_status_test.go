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
	cancel := func(id string) {
		t.Helper()
		_, err := w.Commands.CancelJob(t.Context(), w.cause(ours), id, job.CancelClient)
		w.Must(err)
	}
	shows := func(id, words string) {
		t.Helper()
		line := ""
		w.within("the page says: "+words, func() bool {
			got := w.Call(owner, "GET", "/dashboard/jobs/"+id, nil).Body
			_, line, _ = strings.Cut(got, `id="commit-status"`)
			line, _, _ = strings.Cut(line, "</dd>")
			return strings.Contains(line, "of acme/shop: "+words)
		})
		for _, part := range []string{"Human &lt;b&gt;QA&lt;/b&gt; at ", commit, ">1b4f0e9"} {
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
	tab.WaitText("set to pending until the test ends")
	cancel(told)
	tab.WaitText("set to error, since no verdict comes; the token is deleted") // by itself
	shows(told, "set to error, since no verdict comes; the token is deleted.")

	shows(test(commandtest.RefusedToken), "never set. The code host refused the commit status: the token is unknown or expired (401).")

	forgotten := test("statuses-only")
	shows(forgotten, "set to pending until the test ends.")
	_, err := w.DB.ExecContext(t.Context(), "DELETE FROM vault.held WHERE account_id = $1", ours)
	w.Must(err)
	cancel(forgotten)
	shows(forgotten, "it stays at pending. The token is forgotten.")
}
