package audit_test

import (
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/person"
)

var start = time.Unix(1_800_000_000, 0).UTC()

// log writes a story down, one event after another.
type log struct {
	*audit.Audit
	next      uint64
	now       time.Time
	revisions map[string]uint64
	ledgers   []domain.Event
}

func newLog() *log { return &log{Audit: audit.New(), now: start, revisions: map[string]uint64{}} }

func (l *log) add(stream, actor string, e domain.Event) *log {
	l.See(domain.Recorded{
		Stream: stream, Revision: l.revisions[stream], Type: e.EventType(), Event: e,
		Position: domain.Position{Commit: l.next, Prepare: l.next},
		Meta:     domain.Metadata{Actor: actor, Time: l.now},
	})
	l.next++
	l.revisions[stream]++
	return l
}

func (l *log) ledger(e domain.Event) *log {
	l.ledgers = append(l.ledgers, e)
	return l.add("credits-acme", "key:k", e)
}
func (l *log) job(e domain.Event) *log  { return l.add("job-1", "key:k", e) }
func (l *log) work(e domain.Event) *log { return l.add("job-1", "checker:ann", e) }

func granted() *credits.Granted {
	return &credits.Granted{LotID: "l", Amount: 20, BalanceAfter: 20}
}

func debited() *credits.Debited {
	return &credits.Debited{JobID: "1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}, BalanceAfter: 15}
}

func refunded() *credits.Refunded {
	return &credits.Refunded{JobID: "1", Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}}, BalanceAfter: 20}
}

func created(changes ...func(*job.Created)) *job.Created {
	c := &job.Created{Submission: job.Submission{AccountID: "acme", Price: 5}, Items: []job.Item{{ID: "i1"}}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func slot(c *job.Created)    { c.SessionID = "s1" }
func review(c *job.Created)  { c.Type, c.Items = job.AIReview, nil }
func sandbox(c *job.Created) { c.Sandbox = true }
func noList(c *job.Created)  { c.Items = nil }

func claimed(token int) *job.Claimed { return &job.Claimed{CheckerID: "ann", Token: token} }

func claimedByRobot(robot string) *job.Claimed { return &job.Claimed{CheckerID: robot, Token: 1} }

func cancelled(reason string) *job.Cancelled { return &job.Cancelled{Reason: reason, Refund: 5} }

func failed() *job.Failed { return &job.Failed{Reason: job.FailSLA, Refund: 5} }

func missed(requeues int, requeued bool) *job.SLAMissed {
	return &job.SLAMissed{RequeueCount: requeues, Requeued: requeued}
}

func written() *job.ChecklistWritten { return &job.ChecklistWritten{Items: []job.Item{{ID: "i1"}}} }

func untestable(checker string, token int) *job.UntestableReported {
	return &job.UntestableReported{CheckerID: checker, Token: token}
}

func ruled(ruling job.Ruling, refund domain.Credits) *job.DisputeDecided {
	return &job.DisputeDecided{DisputeID: "d", Decision: ruling, Refund: refund}
}

// refundedLater is a completed job with a dispute, its decision, and a lot; 0: none.
func refundedLater(decided *job.DisputeDecided, lot domain.Credits) *log {
	l := paid().job(created()).work(claimed(1)).work(&job.Completed{}).job(&job.Disputed{DisputeID: "d"}).
		work(&job.DisputeAnswered{DisputeID: "d"}).add("job-1", "operator:o", decided).job(&job.DisputeSettled{DisputeID: "d"})
	if lot > 0 {
		l.ledger(&credits.Granted{LotID: credits.DisputeLot("1"), Amount: lot, BalanceAfter: 15 + lot})
	}
	return l
}

func paid() *log { return newLog().ledger(granted()).ledger(debited()) }

func TestASoundLogHasNoFindings(t *testing.T) {
	t.Parallel()
	stories := map[string]*log{
		"completed": paid().job(created()).work(claimed(1)).work(&job.Released{Token: 1}).work(claimed(2)).
			work(&job.Heartbeat{Token: 2}).work(&job.ItemChecked{}).work(&job.FindingAdded{}).work(&job.Completed{}).
			job(&job.AIReportReady{}).job(&job.Rated{}).job(&job.Rated{}),
		"cancelled": paid().job(created()).job(cancelled(job.CancelClient)).ledger(refunded()),
		"missed three times": paid().job(created()).work(claimed(1)).job(missed(1, true)).job(missed(2, true)).
			work(claimed(2)).job(missed(2, false)).job(failed()).ledger(refunded()),
		"untestable": paid().job(created()).work(claimed(1)).work(untestable("ann", 1)).
			add("job-1", "checker:bob", &job.Claimed{CheckerID: "bob", Token: 2}).
			add("job-1", "checker:bob", untestable("bob", 2)).job(failed()).ledger(refunded()),
		"failed by the operator": paid().job(created()).work(claimed(1)).job(failed()).ledger(refunded()),
		"a list that came later": paid().job(created(noList)).job(written()).work(claimed(1)),
		"a slot": paid().job(created(slot)).work(claimed(1)).job(&job.SlotStarted{}).
			work(&job.ItemChecked{}).work(&job.Completed{}),
		"a slot that was too slow": paid().job(created(slot)).work(claimed(1)).job(&job.SlotStarted{}).
			job(missed(0, false)).job(failed()).ledger(refunded()),
		"a slot whose session was cancelled": paid().job(created(slot)).work(claimed(1)).
			job(cancelled(job.CancelSessionCancelled)).ledger(refunded()),
		"a person who works as the checker": newLog().add("person-p", "operator", &person.Invited{Grant: person.Grant{Role: person.Checker, CheckerID: "ann"}}).
			add("person-q", "operator", &person.Invited{}).add("person-q", "operator", &person.RoleGranted{Grant: person.Grant{Role: person.Checker, CheckerID: "bob"}}).
			ledger(granted()).ledger(debited()).job(created()).add("job-1", "person:p", claimed(1)).add("job-1", "person:p", &job.ItemChecked{}).
			add("job-1", "person:p", untestable("ann", 1)).add("job-1", "person:q", &job.Claimed{CheckerID: "bob", Token: 2}).
			add("job-1", "person:q", &job.Completed{}),
		"an AI review": paid().job(created(review)).job(claimedByRobot(job.Reviewer)).job(&job.Completed{}),
		"a robot that asks": paid().job(created(sandbox)).job(claimedByRobot(job.Player)).job(&job.QuestionAsked{QuestionID: "q", Token: 1}).
			job(&job.AnswerGiven{QuestionID: "q", Robot: true}).job(&job.Completed{}),
		"a robot without an answer": paid().job(created(sandbox)).job(claimedByRobot(job.Player)).job(&job.QuestionAsked{QuestionID: "q", Token: 1}).
			job(&job.QuestionClosed{QuestionID: "q", Reason: job.QuestionUnanswered}).job(&job.ItemChecked{Status: job.ItemSkip}).job(&job.Completed{}),
		"a sandbox's job":             paid().job(created(sandbox)).job(claimedByRobot(job.Player)).job(&job.Completed{}),
		"voided":                      paid().job(&job.Voided{AccountID: "acme"}).ledger(refunded()),
		"a close before the end":      closed(paid().job(created())),
		"a close behind the report":   closed(paid().job(created()).work(claimed(1)).work(&job.Completed{}), "1"),
		"a close behind the refund":   closed(paid().job(created()).job(cancelled(job.CancelClient)).ledger(refunded()), "1"),
		"a close behind a voided job": closed(paid().job(&job.Voided{AccountID: "acme"}).ledger(refunded()), "1"),
		"a dispute with a refund":     refundedLater(ruled(job.Refunded, 5), 5),
		"a dispute with a retest":     refundedLater(ruled(job.Retested, 0), 0),
		"a refund behind a close":     closed(paid().job(created())).job(cancelled(job.CancelClient)).ledger(refunded()),
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
		"a balance that does not add up":         {newLog().ledger(granted()).ledger(overdrawn).job(created()), "invariant 1"},
		"a second charge":                        {paid().job(created()).ledger(debited()), "invariant 3"},
		"a refund of a job that goes on":         {paid().job(created()).ledger(refunded()), "invariant 3"},
		"a second refund":                        {paid().job(created()).job(cancelled(job.CancelClient)).ledger(refunded()).ledger(refunded()), "invariant 3"},
		"a price other than the charge":          {paid().job(&job.Created{Submission: job.Submission{AccountID: "acme", Price: 7}}), "invariant 3"},
		"a charge without a job":                 {paid(), "invariant 4"},
		"a voided job that was not refunded":     {paid().job(&job.Voided{AccountID: "acme"}), "invariant 4"},
		"a cancelled job that was not refunded":  {paid().job(created()).job(cancelled(job.CancelClient)), "invariant 4"},
		"a job without a charge":                 {newLog().job(created()), "invariant 4"},
		"a claim of a claimed job":               {paid().job(created()).work(claimed(1)).work(claimed(2)), "invariant 8"},
		"a claim under an old token":             {paid().job(created()).work(claimed(1)).work(&job.Released{Token: 1}).work(claimed(1)), "invariant 7"},
		"work by somebody else":                  {paid().job(created()).work(claimed(1)).job(&job.ItemChecked{}), "invariant 7"},
		"work by a person who is no checker":     {paid().job(created()).work(claimed(1)).add("person-p", "operator", &person.Invited{}).add("job-1", "person:p", &job.ItemChecked{}), "invariant 7"},
		"work by another checker's person":       {paid().job(created()).work(claimed(1)).add("person-p", "operator", &person.Invited{Grant: person.Grant{Role: person.Checker, CheckerID: "bob"}}).add("job-1", "person:p", &job.ItemChecked{}), "invariant 7"},
		"a question by somebody else":            {paid().job(created()).work(claimed(1)).job(&job.QuestionAsked{QuestionID: "q", Token: 1}), "invariant 7"},
		"a robot's question under another token": {paid().job(created(sandbox)).job(claimedByRobot(job.Player)).job(&job.QuestionAsked{QuestionID: "q", Token: 2}), "invariant 7"},
		"a robot's verdict at a client's word":   {paid().job(created(sandbox)).job(claimedByRobot(job.Player)).job(&job.ItemChecked{}), "invariant 7"},
		"work after the end":                     {paid().job(created()).work(claimed(1)).work(&job.Completed{}).work(&job.ItemChecked{}), "invariant 8"},
		"a cancellation of a claimed job":        {paid().job(created()).work(claimed(1)).job(cancelled(job.CancelClient)).ledger(refunded()), "invariant 8"},
		"a job submitted again":                  {paid().job(created()).job(created()), "invariant 8"},
		"work before the submission":             {newLog().work(claimed(1)), "invariant 8"},
		"a void after the submission":            {paid().job(created()).job(&job.Voided{}), "invariant 8"},
		"a release under another token":          {paid().job(created()).work(claimed(1)).work(&job.Released{Token: 7}), "invariant 7"},

		"a failed job that was not refunded":   {paid().job(created()).job(failed()), "invariant 4"},
		"a refund of a completed job":          {paid().job(created()).work(claimed(1)).work(&job.Completed{}).ledger(refunded()), "invariant 3"},
		"a dispute without its refund":         {refundedLater(ruled(job.Refunded, 5), 0), "invariant 3"},
		"a dispute with half its refund":       {refundedLater(ruled(job.Refunded, 5), 2), "invariant 3"},
		"a refund that no dispute led to":      {refundedLater(ruled(job.Stands, 0), 5), "invariant 3"},
		"a refund beside a retest":             {refundedLater(ruled(job.Refunded, 5), 5).job(ruled(job.Retested, 0)), "invariant 3"},
		"a dispute before the report":          {paid().job(created()).job(&job.Disputed{}), "invariant 8"},
		"half a refund promised":               {paid().job(created()).job(&job.Failed{Refund: 2}).ledger(refunded()), "invariant 3"},
		"a sign of life under another token":   {paid().job(created()).work(claimed(1)).work(&job.Heartbeat{Token: 2}), "invariant 7"},
		"a sign of somebody else's life":       {paid().job(created()).work(claimed(1)).job(&job.Heartbeat{Token: 1}), "invariant 7"},
		"untestable under another token":       {paid().job(created()).work(claimed(1)).work(untestable("ann", 2)), "invariant 7"},
		"untestable at somebody else's word":   {paid().job(created()).work(claimed(1)).job(untestable("ann", 1)), "invariant 7"},
		"untestable at nobody's claim":         {paid().job(created()).job(untestable("ann", 0)), "invariant 7"},
		"work after the SLA was missed":        {paid().job(created()).work(claimed(1)).job(missed(1, true)).add("job-1", "checker:", &job.ItemChecked{}), "invariant 8"},
		"a third miss that is put back":        {paid().job(created()).job(missed(1, true)).job(missed(2, true)).job(missed(3, true)), "invariant 8"},
		"a second miss that fails":             {paid().job(created()).job(missed(1, true)).job(missed(1, false)).job(failed()).ledger(refunded()), "invariant 8"},
		"a miss that counts twice":             {paid().job(created()).job(missed(2, true)), "invariant 8"},
		"a last miss that fails nothing":       {paid().job(created(slot)).job(&job.SlotStarted{}).job(missed(0, false)), "invariant 8"},
		"a claim after the last miss":          {paid().job(created(slot)).job(&job.SlotStarted{}).job(missed(0, false)).work(claimed(1)).job(failed()).ledger(refunded()), "invariant 8"},
		"a miss after the end":                 {paid().job(created()).work(claimed(1)).work(&job.Completed{}).job(missed(1, true)), "invariant 8"},
		"a slot that is put back":              {paid().job(created(slot)).job(&job.SlotStarted{}).job(missed(1, true)), "invariant 8"},
		"a slot's clock before its session":    {paid().job(created(slot)).job(missed(0, false)).job(failed()).ledger(refunded()), "invariant 8"},
		"a slot's work before its session":     {paid().job(created(slot)).work(claimed(1)).work(&job.ItemChecked{}), "invariant 8"},
		"a slot's report before its session":   {paid().job(created(slot)).work(claimed(1)).work(&job.Completed{}), "invariant 8"},
		"a slot that starts twice":             {paid().job(created(slot)).job(&job.SlotStarted{}).job(&job.SlotStarted{}), "invariant 8"},
		"a start of what is no slot":           {paid().job(created()).job(&job.SlotStarted{}), "invariant 8"},
		"a slot that the client cancelled":     {paid().job(created(slot)).job(cancelled(job.CancelClient)).ledger(refunded()), "invariant 8"},
		"a session's end of what is no slot":   {paid().job(created()).job(cancelled(job.CancelSessionExpired)).ledger(refunded()), "invariant 8"},
		"a failure after the end":              {paid().job(created()).job(cancelled(job.CancelClient)).job(failed()).ledger(refunded()), "invariant 8"},
		"a claim without a list":               {paid().job(created(noList)).work(claimed(1)), "invariant 8"},
		"a second list":                        {paid().job(created()).job(written()), "invariant 8"},
		"a list for a claimed job":             {paid().job(created(noList)).job(written()).work(claimed(1)).job(written()), "invariant 8"},
		"an empty list":                        {paid().job(created(noList)).job(&job.ChecklistWritten{}), "invariant 8"},
		"an analysis before the report":        {paid().job(created()).work(claimed(1)).job(&job.AIReportReady{}), "invariant 8"},
		"a second analysis":                    {paid().job(created()).work(claimed(1)).work(&job.Completed{}).job(&job.AIReportReady{}).job(&job.AIReportReady{}), "invariant 8"},
		"a rating before the report":           {paid().job(created()).job(&job.Rated{}), "invariant 8"},
		"a checker who claims an AI review":    {paid().job(created(review)).work(claimed(1)), "invariant 7"},
		"a checker who claims a sandbox's job": {paid().job(created(sandbox)).work(claimed(1)), "invariant 7"},
		"a robot that claims a checker's job":  {paid().job(created()).job(claimedByRobot(job.Player)), "invariant 7"},
		"a position that does not move on":     {positionAgain(), "invariant 6"},
		"a close of nothing":                   {newLog().ledger(&credits.Closed{Number: 1}), "invariant 1"},
		"a close that forgets a pending job":   {closed(paid().job(created()), "1"), "invariant 3"},
		"a close that forgets a refund to come": {
			closed(paid().job(created()).job(cancelled(job.CancelClient)), "1").ledger(refunded()), "invariant 1",
		},
		"a close that forgets a job to come": {closed(paid(), "1").job(created()), "invariant 3"},
		"a charge again behind a close": {
			closed(paid().job(created()).work(claimed(1)).work(&job.Completed{}), "1").ledger(debited()), "invariant",
		},
		"a close with another balance":   {closedWrong(func(e *credits.Closed) { e.Lots[0].Left++ }), "invariant 1"},
		"a close with another sum":       {closedWrong(func(e *credits.Closed) { e.Used-- }), "invariant 1"},
		"a close with another debit":     {closedWrong(func(e *credits.Closed) { e.Open[0].Amount-- }), "invariant 1"},
		"a close without the one before": {closedWrong(func(e *credits.Closed) { e.Number++ }), "invariant 1"},
		"a revision that is missing":     {revisionMissing(), "invariant 6"},
	} {
		findings := c.log.Findings(start.Add(time.Hour))
		if len(findings) == 0 || !strings.HasPrefix(findings[0].String(), c.want) {
			t.Errorf("%s: %v, want %s", name, findings, c.want)
		}
	}
}

// closed closes the ledger of a story, leaving these jobs' debits behind.
func closed(l *log, behind ...string) *log {
	return closedAs(l, func(*credits.Closed) {}, behind...)
}

func closedWrong(how func(*credits.Closed)) *log { return closedAs(paid().job(created()), how) }

func closedAs(l *log, how func(*credits.Closed), behind ...string) *log {
	var st credits.State
	for _, e := range l.ledgers {
		st = credits.Evolve(st, e)
	}
	settled := map[string]credits.Settled{}
	for _, id := range behind {
		d, _ := st.Debit(id)
		settled[id] = credits.Settled{Completed: !d.Refunded}
	}
	events, err := credits.DecideClose(st, settled, start.Add(time.Minute))
	if err != nil {
		panic(err) // a mistake of the test
	}
	how(events[0].(*credits.Closed))
	return l.ledger(events[0])
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

func TestARefundMayTakeAMinuteFromTheJobsEnd(t *testing.T) {
	t.Parallel()
	l := paid().job(created())
	l.now = start.Add(time.Hour)
	l.job(failed())
	if got := l.Findings(l.now.Add(30 * time.Second)); len(got) > 0 {
		t.Error(got)
	}
	if got := l.Findings(l.now.Add(2 * time.Minute)); len(got) != 1 {
		t.Errorf("after two minutes: %v", got)
	}
}

// An event without a rule would pass every audit.
func TestTheAuditHasARuleForEachEventOfAJob(t *testing.T) {
	t.Parallel()
	for _, spec := range job.Specs() {
		l := paid().job(created())
		e := spec.New()
		for _, f := range l.job(e).Findings(start) {
			if strings.Contains(f.Problem, "no rule") {
				t.Error(f.Problem)
			}
		}
	}
}
