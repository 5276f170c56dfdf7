package workbench_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/ai"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections"
)

// The longest test there is, in characters of four bytes, on a log that takes no
// more in one append than any does by default: it can be submitted, checked and
// completed, and is read as it was written. It is here, and not with the program,
// since it would take a minute of the race detector.
func TestTheLongestTestCanBeCompletedOnALogWithTheDefaultLimit(t *testing.T) {
	t.Parallel()
	const items = 100
	long := func(n int) string { return strings.Repeat("😀", n) }
	w := setup(t)
	accountID, checkerID := w.Account("Acme", 10, false), w.Checker("Ann")
	key, err := w.Commands.IssueKey(t.Context(), pagetest.Operator(), accountID, command.IssueKey{Scope: account.ScopeFull})
	w.Shown(key.Position, err)
	jobID := w.test(accountID, long(200), 0, func(in *command.SubmitJob) {
		in.Description, in.AccessInstructions = long(5000), long(4000)
		for range items {
			in.Items = append(in.Items, command.NewItem{Description: long(1000), ExpectedOutcome: long(1000), Severity: job.Minor})
		}
	})
	claimed := w.claimed(checkerID, jobID)
	claim := command.Claim{CheckerID: checkerID, JobID: jobID, Token: claimed.Token}
	for _, i := range claimed.Checklist {
		_, _, err := w.Commands.CheckItem(t.Context(), pagetest.ByChecker(checkerID), claim, command.CheckItem{ItemID: i.ID, Status: job.ItemFail, Note: long(2000)})
		w.Must(err)
	}
	_, at, err := w.Commands.CompleteJob(t.Context(), pagetest.ByChecker(checkerID), claim, command.CompleteJob{Summary: long(5000)})
	w.Shown(at, err)

	report := w.Send(pagetest.Guest{}, http.MethodGet, "/v1/jobs/"+jobID+"/report", nil, "Authorization", "Bearer "+key.Token)
	if n := strings.Count(report.Body, `:"`+long(2000)+`"`); n != items || !strings.Contains(report.Body, `"failCount":100`) || !strings.Contains(report.Body, long(5000)) {
		t.Errorf("%d: the report has %d notes and %d bytes", report.Status, n, len(report.Body))
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	again := command.New(command.Deps{ // what is folded from the log anew
		Log: w.Log, Sealer: w.Vault, AI: ai.New(ai.Config{Log: quiet}), Reads: projections.CommandReads{Reads: w.Reads}, Now: time.Now, ClaimsPerChecker: 1,
	})
	defer again.Drain()
	eventually.Within(t, eventually.Patience, func() error { // a busy machine may not read it all within a command's time
		at, err = again.RateJob(t.Context(), pagetest.Client(accountID), jobID, 5, "")
		return err
	})
	w.Shown(at, err)
}
