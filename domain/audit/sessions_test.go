package audit_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/session"
)

func gathered() *session.Created {
	return &session.Created{Submission: session.Submission{AccountID: "acme", Slots: []session.Slot{{Slot: 1, JobID: "1"}, {Slot: 2, JobID: "2"}, {Slot: 3, JobID: "3"}}}}
}

func started() *session.Started { return &session.Started{Ready: []int{1, 2}, Dropped: []int{3}} }

// session appends an event of the session s1.
func (l *log) session(e domain.Event) *log { return l.add("session-s1", "policy:session", e) }

// slots appends the three slots' submissions and what follows on each.
func (l *log) slots(then ...func(l *log, stream string)) *log {
	for i, stream := range []string{"job-1", "job-2", "job-3"} {
		l.add(stream, "key:k", created(slot))
		if i < len(then) {
			then[i](l, stream)
		}
	}
	return l
}

func cancelledSlot(l *log, stream string) {
	l.add(stream, "policy:session", cancelled(job.CancelSessionExpired))
}

func finishedSlot(l *log, stream string) {
	l.add(stream, "checker:ann", claimed(1))
	l.add(stream, "policy:session", &job.SlotStarted{})
	l.add(stream, "checker:ann", &job.Completed{})
}

// sessionFindings are those about the session; its jobs have no debits here.
func sessionFindings(l *log) (found []string) {
	for _, f := range l.Findings(l.now.Add(time.Hour)) {
		if f.Stream == "session-s1" {
			found = append(found, f.Problem)
		}
	}
	return found
}

func TestSoundSessionsHaveNoFindings(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*log{
		"a lobby": newLog().session(gathered()).slots().session(&session.SlotReady{Slot: 1}).session(&session.SlotLeft{Slot: 1}),
		"completed": newLog().session(gathered()).session(started()).slots(finishedSlot, finishedSlot).
			session(&session.Completed{}),
		"expired":   newLog().session(gathered()).slots(cancelledSlot, cancelledSlot, cancelledSlot).session(&session.Expired{}),
		"cancelled": newLog().session(gathered()).session(started()).slots(finishedSlot, cancelledSlot, cancelledSlot).session(&session.Cancelled{}),
	} {
		if found := sessionFindings(l); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func TestEveryWrongSessionIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		log  *log
		want string
	}{
		"created twice":     {newLog().session(gathered()).session(gathered()), "is created again"},
		"started unopened":  {newLog().session(started()), "session.started before its creation"},
		"started twice":     {newLog().session(gathered()).session(started()).session(started()), "session.started while it is active"},
		"started by one":    {newLog().session(gathered()).session(&session.Started{Ready: []int{1}, Dropped: []int{2, 3}}), "started with [1] and without [2 3] of 3 slots"},
		"expired, started":  {newLog().session(gathered()).slots(cancelledSlot, cancelledSlot, cancelledSlot).session(&session.Expired{}).session(started()), "session.started while it is expired"},
		"completed lobby":   {newLog().session(gathered()).slots(finishedSlot, finishedSlot, finishedSlot).session(&session.Completed{}), "session.completed while it is lobby"},
		"completed early":   {newLog().session(gathered()).session(started()).slots(finishedSlot).session(&session.Completed{}), "completed before slot 2's job ended"},
		"expired but alive": {newLog().session(gathered()).slots(cancelledSlot, cancelledSlot).session(&session.Expired{}), "is expired and slots [3] go on"},
	} {
		if found := sessionFindings(c.log); len(found) != 1 || found[0] != c.want {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
	}
}
