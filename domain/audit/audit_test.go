package audit_test

import (
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

var start = time.Unix(1_800_000_000, 0).UTC()

// log writes a story down, one event after another.
type log struct {
	*audit.Audit
	next      uint64
	revisions map[string]uint64
}

func newLog() *log { return &log{Audit: audit.New(), revisions: map[string]uint64{}} }

func (l *log) add(stream, actor string, e domain.Event) *log {
	l.See(domain.Recorded{
		Stream: stream, Revision: l.revisions[stream], Type: e.EventType(), Event: e,
		Position: domain.Position{Commit: l.next, Prepare: l.next},
		Meta:     domain.Metadata{Actor: actor, Time: start},
	})
	l.next++
	l.revisions[stream]++
	return l
}

func (l *log) ledger(e domain.Event) *log { return l.add("credits-acme", "key:k", e) }
func (l *log) job(e domain.Event) *log    { return l.add("job-1", "key:k", e) }
func (l *log) work(e domain.Event) *log   { return l.add("job-1", "checker:ann", e) }

func granted() *credits.Granted {
	return &credits.Granted{LotID: "l", Amount: 20, BalanceAfter: 20}
}

func debited() *credits.Debited {
	return &credits.Debited{JobID: "1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}, BalanceAfter: 15}
}

func refunded() *credits.Refunded {
	return &credits.Refunded{JobID: "1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}, BalanceAfter: 20}
}

func created() *job.Created { return &job.Created{AccountID: "acme", Price: 5} }

func claimed(token int) *job.ClaimedBy { return &job.ClaimedBy{CheckerID: "ann", Token: token} }

func paid() *log { return newLog().ledger(granted()).ledger(debited()) }

func TestASoundLogHasNoFindings(t *testing.T) {
	t.Parallel()
	stories := map[string]*log{
		"completed": paid().job(created()).work(claimed(1)).work(&job.Released{Token: 1}).work(claimed(2)).
			work(&job.ItemChecked{}).work(&job.FindingAdded{}).work(&job.CompletedWith{}),
		"cancelled": paid().job(created()).job(&job.CancelledBy{Refund: 5}).ledger(refunded()),
		"voided":    paid().job(&job.VoidedOrphan{AccountID: "acme"}).ledger(refunded()),
	}
	for name, l := range stories {
		if got := l.Findings(start.Add(time.Hour)); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEachBrokenInvariantIsFound(t *testing.T) {
	t.Parallel()
	overdrawn := debited()
	overdrawn.BalanceAfter = 18
	for name, c := range map[string]struct {
		log  *log
		want string
	}{
		"a balance that does not add up":        {newLog().ledger(granted()).ledger(overdrawn).job(created()), "invariant 1"},
		"a second charge":                       {paid().job(created()).ledger(debited()), "invariant 3"},
		"a refund of a job that goes on":        {paid().job(created()).ledger(refunded()), "invariant 3"},
		"a second refund":                       {paid().job(created()).job(&job.CancelledBy{}).ledger(refunded()).ledger(refunded()), "invariant 3"},
		"a price other than the charge":         {paid().job(&job.Created{AccountID: "acme", Price: 7}), "invariant 3"},
		"a charge without a job":                {paid(), "invariant 4"},
		"a voided job that was not refunded":    {paid().job(&job.VoidedOrphan{AccountID: "acme"}), "invariant 4"},
		"a cancelled job that was not refunded": {paid().job(created()).job(&job.CancelledBy{}), "invariant 4"},
		"a job without a charge":                {newLog().job(created()), "invariant 4"},
		"a claim of a claimed job":              {paid().job(created()).work(claimed(1)).work(claimed(2)), "invariant 8"},
		"a claim under an old token":            {paid().job(created()).work(claimed(1)).work(&job.Released{Token: 1}).work(claimed(1)), "invariant 7"},
		"work by somebody else":                 {paid().job(created()).work(claimed(1)).job(&job.ItemChecked{}), "invariant 7"},
		"work after the end":                    {paid().job(created()).work(claimed(1)).work(&job.CompletedWith{}).work(&job.ItemChecked{}), "invariant 8"},
		"a cancellation of a claimed job":       {paid().job(created()).work(claimed(1)).job(&job.CancelledBy{}).ledger(refunded()), "invariant 8"},
		"a job submitted again":                 {paid().job(created()).job(created()), "invariant 8"},
		"work before the submission":            {newLog().work(claimed(1)), "invariant 8"},
		"a void after the submission":           {paid().job(created()).job(&job.VoidedOrphan{}), "invariant 8"},
		"a release under another token":         {paid().job(created()).work(claimed(1)).work(&job.Released{Token: 7}), "invariant 7"},
		"a position that does not move on":      {positionAgain(), "invariant 6"},
		"a revision that is missing":            {revisionMissing(), "invariant 6"},
	} {
		findings := c.log.Findings(start.Add(time.Hour))
		if len(findings) == 0 || !strings.HasPrefix(findings[0].String(), c.want) {
			t.Errorf("%s: %v, want %s", name, findings, c.want)
		}
	}
}

func positionAgain() *log {
	l := paid().job(created())
	l.next--
	return l.work(claimed(1))
}

func revisionMissing() *log {
	l := paid().job(created())
	l.revisions["job-1"]++
	return l.work(claimed(1))
}

func TestADebitMayWaitAMinuteForItsJob(t *testing.T) {
	t.Parallel()
	if got := paid().Findings(start.Add(30 * time.Second)); len(got) > 0 {
		t.Error(got)
	}
}
