// Package audit checks the whole log against invariants (ARCHITECTURE.md, "Invariants"
// 1 to 4, 6, 7 and 8). It is a fold like any other: See takes every event in the log's
// order, and Findings lists the broken ones.
package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/person"
)

// settledWithin is how long a debit may stand without its job (invariant 4).
const settledWithin = time.Minute

// Finding is a broken invariant: its number, the stream and the problem.
type Finding struct {
	Invariant int    `json:"invariant"`
	Stream    string `json:"stream"`
	Problem   string `json:"problem"`
}

func (f Finding) String() string {
	return fmt.Sprintf("invariant %d: %s: %s", f.Invariant, f.Stream, f.Problem)
}

// Audit is the fold's state. It holds a few words per job.
type Audit struct {
	// Events counts the events seen, Jobs the submitted jobs.
	Events, Jobs int

	last      domain.Position
	revisions map[string]uint64 // by stream: the next revision
	ledgers   map[string]*ledger
	jobs      map[string]*life
	sessions  map[string]*sessionRecord
	// people maps the actors of people with checkers to these checkers.
	people   map[string][]string
	findings []Finding
}

type ledger struct {
	state   credits.State
	debits  map[string]*debit
	granted map[string]domain.Credits // by lot
	damaged bool
}

type debit struct {
	at       time.Time
	amount   domain.Credits
	refunded bool
}

// life is the audit's record of a job.
type life struct {
	account  string
	price    domain.Credits
	status   job.Status
	checker  string
	token    int
	requeues int
	endedAt  time.Time // when it was cancelled or failed: the refund is owed from then on

	robots  bool // a sandbox's job, or an AI review: not for people
	slot    bool // of a session
	waiting bool // a slot whose session has not started
	noList  bool
	failing bool // the next event must be job.failed
	told    bool // the analysis is there

	owed     domain.Credits // the refund that a dispute led to
	madeGood time.Time      // when a dispute led to a refund or a new test

	question string // the open question
	skipping bool   // a question ran out: the next event may be a skip by the policy
}

// New starts an audit of an empty log.
func New() *Audit {
	return &Audit{
		revisions: make(map[string]uint64),
		ledgers:   make(map[string]*ledger),
		jobs:      make(map[string]*life),
		sessions:  make(map[string]*sessionRecord),
		people:    make(map[string][]string),
	}
}

// See takes the next event.
func (a *Audit) See(r domain.Recorded) {
	if a.Events > 0 && r.Position.Compare(a.last) <= 0 {
		a.find(6, r.Stream, "position %s comes after %s", r.Position, a.last)
	}
	if want := a.revisions[r.Stream]; r.Revision != want {
		a.find(6, r.Stream, "revision %d where %d was next", r.Revision, want)
	}
	a.Events++
	a.last, a.revisions[r.Stream] = r.Position, r.Revision+1
	switch {
	case r.Disowned:
	case strings.HasPrefix(r.Stream, domain.CreditsStreams):
		a.seeLedger(r, r.StreamID())
	case strings.HasPrefix(r.Stream, domain.JobStreams):
		a.seeJob(r, r.StreamID())
	case strings.HasPrefix(r.Stream, domain.SessionStreams):
		a.seeSession(r, r.StreamID())
	case strings.HasPrefix(r.Stream, domain.PersonStreams):
		a.seePerson(r, "person:"+r.StreamID())
	}
}

// AccountOf is the account of a job; empty for an unseen job.
func (a *Audit) AccountOf(jobID string) string {
	if j := a.jobs[jobID]; j != nil {
		return j.account
	}
	return ""
}

// seePerson records the checkers of a person. It keeps rights that have ended, because
// the person may have decided an event before that.
func (a *Audit) seePerson(r domain.Recorded, actor string) {
	var g person.Grant
	switch e := r.Event.(type) {
	case *person.Invited:
		g = e.Grant
	case *person.RoleGranted:
		g = e.Grant
	}
	if g.CheckerID != "" {
		a.people[actor] = append(a.people[actor], g.CheckerID)
	}
}

func (a *Audit) seeLedger(r domain.Recorded, accountID string) {
	l := a.ledgers[accountID]
	if l == nil {
		l = &ledger{debits: make(map[string]*debit), granted: make(map[string]domain.Credits)}
		a.ledgers[accountID] = l
	}
	switch e := r.Event.(type) {
	case *credits.Debited:
		if l.debits[e.JobID] != nil {
			a.find(3, r.Stream, "job %s is charged twice", e.JobID)
			return
		}
		l.debits[e.JobID] = &debit{at: r.Meta.Time, amount: e.Amount}
	case *credits.Granted:
		l.granted[e.LotID] = e.Amount
	case *credits.Refunded:
		d := l.debits[e.JobID]
		if d == nil || d.refunded {
			a.find(3, r.Stream, "job %s is refunded without a debit that is owed", e.JobID)
			return
		}
		d.refunded = true
	case *credits.Closed:
		a.seeClose(r, l, e)
	}
	l.state = credits.Evolve(l.state, r.Event)
	if err := l.state.Damage(); err != nil && !l.damaged {
		l.damaged = true
		a.find(1, r.Stream, "at revision %d: %v", r.Revision, err)
	}
	if l.state.Balance() < 0 {
		a.find(1, r.Stream, "balance %d at revision %d", l.state.Balance(), r.Revision)
	}
}

// seeClose compares the debits that a close leaves behind with the state of their jobs in
// the log so far. Evolve compares the rest of the close with the ledger.
func (a *Audit) seeClose(r domain.Recorded, l *ledger, e *credits.Closed) {
	if r.Revision == 0 {
		a.find(1, r.Stream, "begins with a close")
	}
	kept := e.Keeps()
	refunded, open := l.state.Unsettled()
	for _, jobID := range open {
		if j := a.jobs[jobID]; !kept[jobID] && (j == nil || j.status != job.StatusCompleted) {
			a.find(3, r.Stream, "close %d leaves the debit of job %s behind, which can still be refunded", e.Number, jobID)
		}
	}
	for _, jobID := range refunded {
		if j := a.jobs[jobID]; !kept[jobID] && (j == nil || !j.refundable() && j.status != job.StatusVoided) {
			a.find(3, r.Stream, "close %d leaves the refund of job %s behind, which has not ended", e.Number, jobID)
		}
	}
}

func (a *Audit) seeJob(r domain.Recorded, jobID string) {
	j := a.jobs[jobID]
	switch e := r.Event.(type) {
	case *job.Created:
		if j != nil {
			a.find(8, r.Stream, "is created again")
			return
		}
		a.Jobs++
		a.jobs[jobID] = &life{
			account: e.AccountID, price: e.Price, status: job.StatusPending,
			robots: e.Sandbox || e.Type.Automatic(),
			slot:   e.SessionID != "", waiting: e.SessionID != "",
			noList: len(e.Items) == 0 && !e.Type.Automatic(),
		}
		return
	case *job.Voided:
		if j != nil {
			a.find(8, r.Stream, "is voided although it exists")
			return
		}
		a.jobs[jobID] = &life{account: e.AccountID, status: job.StatusVoided}
		return
	}
	if j == nil {
		a.find(8, r.Stream, "%s before its submission", r.Type)
		return
	}
	a.transition(r, j)
}

// Findings lists the broken invariants of the log as seen so far. now decides which
// debits have waited too long for their job.
func (a *Audit) Findings(now time.Time) []Finding {
	findings := slices.Clone(a.findings)
	add := func(invariant int, stream, format string, args ...any) {
		findings = append(findings, Finding{Invariant: invariant, Stream: stream, Problem: fmt.Sprintf(format, args...)})
	}
	for accountID, l := range a.ledgers {
		stream := domain.CreditsStream(accountID)
		if st := l.state; st.Granted() != st.Balance()+st.Used()+st.Expired() {
			add(2, stream, "granted %d is not balance %d + used %d + expired %d", st.Granted(), st.Balance(), st.Used(), st.Expired())
		}
		for jobID, d := range l.debits {
			j := a.jobs[jobID]
			orphan := j == nil || j.status == job.StatusVoided
			if orphan && !d.refunded && now.Sub(d.at) > settledWithin {
				add(4, stream, "the debit of %s has neither job nor refund", jobID)
			}
			if d.refunded && !orphan && !j.refundable() {
				add(3, stream, "job %s is %s and refunded", jobID, j.status)
			}
		}
	}
	for jobID, j := range a.jobs {
		if j.status == job.StatusVoided {
			continue
		}
		stream := domain.JobStream(jobID)
		l := a.ledgers[j.account]
		if l == nil || l.debits[jobID] == nil {
			add(4, stream, "has no debit")
			continue
		}
		if d := l.debits[jobID]; d.amount != j.price {
			add(3, stream, "costs %d and was charged %d", j.price, d.amount)
		}
		if j.refundable() && !l.debits[jobID].refunded && now.Sub(j.endedAt) > settledWithin {
			add(4, stream, "is %s and not refunded", j.status)
		}
		if j.failing {
			add(8, stream, "missed its SLA for good and did not fail")
		}
	}
	a.disputes(now, add)
	for sessionID, g := range a.sessions {
		if open := a.openSlots(g, now); len(open) > 0 {
			add(8, domain.SessionStream(sessionID), "is %s and slots %v go on", g.status, open)
		}
	}
	slices.SortFunc(findings, func(x, y Finding) int { return strings.Compare(x.String(), y.String()) })
	return findings
}

// disputes compares the refunds of disputes with their lots.
func (a *Audit) disputes(now time.Time, add func(invariant int, stream, format string, args ...any)) {
	for jobID, j := range a.jobs {
		var got domain.Credits
		if l := a.ledgers[j.account]; l != nil {
			got = l.granted[credits.DisputeLot(jobID)]
		}
		if got != j.owed && (got > 0 || now.Sub(j.madeGood) > settledWithin) {
			add(3, domain.JobStream(jobID), "a dispute is to refund %d, and %d came back", j.owed, got)
		}
	}
}

func (a *Audit) find(invariant int, stream, format string, args ...any) {
	a.findings = append(a.findings, Finding{Invariant: invariant, Stream: stream, Problem: fmt.Sprintf(format, args...)})
}
