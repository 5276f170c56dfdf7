package console_test

import (
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/internal/testing/pagetest"
)

// Decisions, "Disputes": the client says what is wrong, the checker answers, and an operator who
// has given a reason sees both words and decides.
func TestAnOperatorDecidesADispute(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account := w.operates("Olga Example"), w.Account("Acme", 100, false)
	owner := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	viewer := w.Joined("Vic", person.Grant{Role: person.Viewer, AccountID: account})
	checker := w.Checker("Carol")
	jobID := w.test(account, "Sign-up")
	c, err := w.Commands.ClaimJob(t.Context(), pagetest.ByChecker(checker), checker, jobID)
	w.Shown(c.Position, err)
	claim, item := command.Claim{CheckerID: checker, JobID: jobID, Token: c.Token}, c.Checklist[0].ID
	for _, i := range c.Checklist {
		_, at, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(checker), claim, command.CheckItem{ItemID: i.ID, Status: job.ItemFail, Note: "A blank page"})
		w.Shown(at, err)
	}
	_, at, err := w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(checker), claim, command.CompleteJob{Summary: "done"})
	w.Shown(at, err)

	report, of := "/dashboard/jobs/"+jobID, "/console/jobs/"+jobID
	w.has(owner, report, "This is wrong")
	if body := w.has(viewer, report); strings.Contains(body, "This is wrong") {
		t.Error("a viewer may dispute")
	}
	if got := w.Call(owner, "POST", report+"/disputes", form("item", item, "why", "")); got.Status != 422 || !strings.Contains(got.Body, `id="why-`+item) {
		t.Errorf("without a reason: %d", got.Status)
	}
	if got := w.Call(viewer, "POST", report+"/disputes", form("item", item, "why", "No")); got.Status != 403 {
		t.Errorf("a viewer's dispute: %d", got.Status)
	}
	if got := w.Call(owner, "POST", report+"/disputes", form("item", item, "why", "It was down "+hostile)); got.Status != 303 {
		t.Fatalf("the dispute: %d %s", got.Status, got.Body)
	}
	w.has(owner, report, "It was down &lt;script&gt;", "An operator has not decided yet.")
	held, err := w.Reads.Jobs.Job(t.Context(), account, jobID)
	w.Must(err)
	dispute := held.Disputes[0].DisputeID
	_, at, err = w.Commands.AnswerDispute(t.Context(), pagetest.ByChecker(checker), claim, dispute, "Three times.")
	w.Shown(at, err)

	w.has(olga, "/console/jobs?status=disputed", jobID)
	if body := w.has(olga, of); strings.Contains(body, "It was down") || strings.Contains(body, "Three times.") {
		t.Error("the words are shown before a look")
	}
	if got := w.Call(olga, "POST", "/console/streams/job-"+jobID+"/look", form("reason", "A dispute", "next", of)); got.Status != 303 {
		t.Fatalf("looking: %d", got.Status)
	}
	w.has(olga, of, "It was down &lt;script&gt;", "Three times.", "A blank page", "The verdict stands")
	decide := of + "/disputes/" + dispute
	if got := w.Call(olga, "POST", decide, form("decision", "overturned")); got.Status != 422 {
		t.Errorf("without a reason: %d", got.Status)
	}
	if got := w.Call(olga, "POST", decide, form("decision", "perhaps", "reason", "x")); got.Status != 422 {
		t.Errorf("a decision that there is not: %d", got.Status)
	}
	if got := w.Call(olga, "POST", decide, form("decision", "overturned", "reason", "The log shows an outage")); got.Status != 303 {
		t.Fatalf("the decision: %d %s", got.Status, got.Body)
	}
	w.has(olga, "/console/acts", "decided a dispute of", "The log shows an outage")
	w.has(olga, "/console/checkers", "disputed: 0 stood, 1 fell")
	w.has(owner, report, "Three times.", "the verdict does not count", "its verdict was overturned")
	if body := w.has(olga, "/console/jobs?status=disputed"); strings.Contains(body, jobID) {
		t.Error("a decided dispute is listed as open")
	}
	if got := w.Call(olga, "POST", decide, form("decision", "refund", "reason", "x")); got.Status != 409 && got.Status != 422 {
		t.Errorf("a second decision: %d", got.Status)
	}
}

// A free retest checks the URL as a submission does.
func TestAFreeRetestOfAPrivateHostIsRefused(t *testing.T) {
	t.Parallel()
	w := setup(t)
	olga, account := w.operates("Olga"), w.Account("Acme", 100, false)
	checker := w.Checker("Carol")
	out, err := w.Commands.SubmitJob(t.Context(), pagetest.Client(account), command.SubmitJob{
		Submission: job.Submission{URL: "http://10.0.0.7/", Title: "Inside", Type: job.GeneralQA, TypeEcho: "general_qa", Source: "api"},
		Items:      []command.NewItem{{Description: "loads", Severity: job.Major}},
	})
	w.Shown(out.Position, err)
	c, err := w.Commands.ClaimJob(t.Context(), pagetest.ByChecker(checker), checker, out.JobID)
	w.Shown(c.Position, err)
	claim, item := command.Claim{CheckerID: checker, JobID: out.JobID, Token: c.Token}, c.Checklist[0].ID
	_, _, err = w.Commands.CheckItem(t.Context(), pagetest.ByChecker(checker), claim, command.CheckItem{ItemID: item, Status: job.ItemFail})
	w.Must(err)
	_, _, err = w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(checker), claim, command.CompleteJob{Summary: "done"})
	w.Must(err)
	d, at, err := w.Commands.DisputeVerdict(t.Context(), pagetest.Client(account), out.JobID, item, "No.")
	w.Shown(at, err)
	decide := "/console/jobs/" + out.JobID + "/disputes/" + d.DisputeID
	if got := w.Call(olga, "POST", decide, form("decision", "retest", "reason", "x")); got.Status != 422 || !strings.Contains(got.Body, "private") {
		t.Errorf("the retest of a private host: %d %s", got.Status, got.Body)
	}
	if j, err := w.Reads.Jobs.Job(t.Context(), account, out.JobID); err != nil || j.Disputes[0].Decided != nil {
		t.Errorf("the dispute is %+v, %v", j.Disputes, err)
	}
}
