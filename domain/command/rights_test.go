package command_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/policy"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// right says that the event which set a policy's timer gives the right to the policy's own
// event.
type right func(a *acts, cause, effect domain.Recorded) bool

// rights are those of each policy; one of them is enough. Both streams are of one account
// in any case.
var rights = map[string][]right{
	"orphaned_debit": {jobOfDebit, ledgerOfAccount},
	"missing_refund": {ledgerOfAccount},
	"lot_expiry":     {ownStream},
	"dispute":        {ownStream, ledgerOfAccount, jobThatMakesGood},
	"sla":            {ownStream, ledgerOfAccount},
	"silent_claim":   {ownStream},
	"question":       {ownStream},
	"player":         {ownStream},
	"checklist":      {ownStream},
	"analysis":       {ownStream},
	"review":         {ownStream, ledgerOfAccount},
	"loop_judge":     {ownStream, loopOfJob},
	"loop_silence":   {ownStream},
	"session":        {ownStream, jobOfSession, ledgerOfAccount},
	"commit_status":  {jobOfVerdict, jobThatIsReplaced, ledgerOfAccount},
	"archive":        {jobOfProject, sessionOfProject, ledgerOfAccount},
}

func ownStream(_ *acts, cause, effect domain.Recorded) bool { return effect.Stream == cause.Stream }

func ledgerOfAccount(a *acts, cause, effect domain.Recorded) bool {
	return effect.Stream == domain.CreditsStream(a.accounts[cause.Stream])
}

func jobOfDebit(_ *acts, cause, effect domain.Recorded) bool {
	e, is := cause.Event.(*credits.Debited)
	return is && effect.Stream == domain.JobStream(e.JobID)
}

func jobThatMakesGood(a *acts, cause, effect domain.Recorded) bool {
	return a.jobs[effect.Stream].ParentID == cause.StreamID() && a.jobs[effect.Stream].Price == 0
}

func loopOfJob(a *acts, cause, effect domain.Recorded) bool {
	return effect.Stream == domain.LoopStream(a.jobs[cause.Stream].LoopID)
}

func jobOfSession(a *acts, cause, effect domain.Recorded) bool {
	of := func(r domain.Recorded) string {
		if strings.HasPrefix(r.Stream, domain.SessionStreams) {
			return r.Stream
		}
		return a.slots[r.Stream]
	}
	return of(effect) != "" && of(effect) == of(cause)
}

func jobOfVerdict(a *acts, cause, effect domain.Recorded) bool {
	asked := a.jobs[cause.Stream].CommitStatus
	return asked != nil && strings.HasPrefix(effect.Stream, domain.JobStreams) && slices.Contains(asked.Jobs, effect.StreamID())
}

func jobThatIsReplaced(a *acts, cause, effect domain.Recorded) bool {
	newer, older := a.jobs[cause.Stream], a.jobs[effect.Stream]
	return newer.CommitStatus != nil && older.CommitStatus != nil && older.CommitStatus.SamePlace(newer.CommitStatus.CommitStatus) &&
		(newer.CommitStatus.AccountWide || older.ProjectID == newer.ProjectID)
}

func jobOfProject(a *acts, cause, effect domain.Recorded) bool {
	return a.jobs[effect.Stream].ProjectID == cause.StreamID()
}

// sessionOfProject is a right to the session, and to the jobs of its slots.
func sessionOfProject(a *acts, cause, effect domain.Recorded) bool {
	of := cmp.Or(a.slots[effect.Stream], effect.Stream)
	for slot, session := range a.slots {
		if session == of && a.jobs[slot].ProjectID == cause.StreamID() {
			return true
		}
	}
	return false
}

// acts is what a log says of its streams.
type acts struct {
	accounts map[string]string // by stream
	slots    map[string]string // the session, by the job of its slot
	jobs     map[string]job.State
	events   map[string]domain.Recorded // by id
}

// overreaching are the events that policies wrote without a right to it.
func overreaching(log []domain.Recorded) (events []domain.Recorded) {
	a := &acts{accounts: map[string]string{}, slots: map[string]string{}, jobs: map[string]job.State{}, events: map[string]domain.Recorded{}}
	for _, r := range log {
		a.see(r)
		kind, byPolicy := strings.CutPrefix(r.Meta.Actor, "policy:")
		cause, known := a.events[r.Meta.CausationID]
		if !byPolicy || !known {
			continue
		}
		hasRight := slices.ContainsFunc(rights[kind], func(may right) bool { return may(a, cause, r) })
		if !hasRight || a.accounts[r.Stream] != a.accounts[cause.Stream] {
			events = append(events, r)
		}
	}
	return events
}

func (a *acts) see(r domain.Recorded) {
	a.events[r.ID.String()] = r
	switch e := r.Event.(type) {
	case *job.Created:
		a.accounts[r.Stream] = e.AccountID
	case *job.Voided:
		a.accounts[r.Stream] = e.AccountID
	case *session.Created:
		a.accounts[r.Stream] = e.AccountID
		for _, slot := range e.Slots {
			a.slots[domain.JobStream(slot.JobID)] = r.Stream
		}
	case *loop.Started:
		a.accounts[r.Stream] = e.AccountID
	case *project.Created:
		a.accounts[r.Stream] = e.AccountID
	}
	if strings.HasPrefix(r.Stream, domain.CreditsStreams) {
		a.accounts[r.Stream] = r.StreamID()
	}
	if strings.HasPrefix(r.Stream, domain.JobStreams) {
		a.jobs[r.Stream] = job.Evolve(a.jobs[r.Stream], r.Event)
	}
}

func TestEveryPolicyHasARightToWhatItWrites(t *testing.T) {
	t.Parallel()
	kinds := map[string]bool{}
	for _, p := range policy.Rules() {
		kinds[p.Kind] = true
		if len(rights[p.Kind]) == 0 {
			t.Errorf("the policy %s has no right", p.Kind)
		}
	}
	if len(rights) != len(kinds) {
		t.Errorf("there are rights of %v, and the policies %v", slices.Sorted(maps.Keys(rights)), slices.Sorted(maps.Keys(kinds)))
	}
}
