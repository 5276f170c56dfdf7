// Package thirdmonth writes the third month of an account into a log: 40 projects, 5,000
// tests, three members, two webhooks that are disabled, and 7 credits that are left. Tests
// of pages, and pictures of them, see with it what an owner of many projects sees.
package thirdmonth

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"humanqa/domain"
	"humanqa/domain/command/money"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/project"
)

const (
	// Projects, Tests and Left are the figures of the account.
	Projects, Tests = 40, 5_000
	Members, Left   = 3, 7
	// Failing is the number of projects with open failures, Worse that of those that passed
	// a week ago, and Quiet that of projects whose latest test is older than two weeks.
	Failing, Worse, Quiet = 23, 8, 12
	// Dead is the number of webhooks that are disabled.
	Dead = 2
	// Asking is the number of tests whose checkers wait for an answer.
	Asking = 2
	// Batch is the number of tests of today's batch; one passed, four failed.
	Batch, batchPassed, batchFailed = 20, 1, 4
	// Short is the number of items of the newest tests, which the owner's colleague submitted.
	Short = 3

	broken  = Failing - batchFailed     // projects that fail since before today
	spread  = Projects - broken - Quiet // projects of the batch; its first test is the last one's
	waiting = 7                         // tests of no batch that wait for a checker: newer than the questions, and shorter
	days    = 89                        // of the first test, before today
	price   = 5
	checker = "ann"
	writers = 8
)

// Log is the log that is written: *eventstore.Client.
type Log interface {
	Append(ctx context.Context, stream string, at domain.ExpectedRevision, events []domain.NewEvent) (domain.AppendResult, error)
}

// Month is what was written.
type Month struct {
	AccountID  string
	People     []Member // the owner first
	ProjectIDs []string // those that fail come first, the quiet ones last
	DeadHooks  []string // projects
	Questions  []string // tests whose checkers wait for an answer
	BatchID    string
	Report     string // a test that failed and has a newer test behind it
	Newest     string // the first project's latest test
}

// Member is a person of the account.
type Member struct {
	ID, Name string
	Role     person.Role
}

type writer struct {
	Month
	ctx context.Context
	log Log
	now time.Time
	all []life
	// times is how many tests there are for each one of the month.
	times int
}

// life is a test on its way into the log.
type life struct {
	id, project string
	at          time.Time // of its submission
	events      []domain.Event
}

// Write writes the month of an account that exists and has no credits yet, with so many times
// its tests; with more than one time, without webhooks: they would be delivered. No part that
// follows the log may run: it would find debits whose jobs are still to come.
func Write(ctx context.Context, log Log, accountID string, times int, now time.Time) (Month, error) {
	w := &writer{ctx: ctx, log: log, now: now.UTC(), times: times, Month: Month{AccountID: accountID, BatchID: uuid.NewString()}}
	for _, one := range members {
		if err := w.invite(one); err != nil {
			return Month{}, err
		}
	}
	for n := range Projects {
		if err := w.openProject(n); err != nil {
			return Month{}, err
		}
		w.testProject(n)
	}
	w.testToday()
	slices.SortStableFunc(w.all, func(a, b life) int { return a.at.Compare(b.at) })
	return w.Month, w.writeDays()
}

// invite writes a member who has joined.
func (w *writer) invite(one Member) error {
	one.ID = uuid.NewString()
	w.People = append(w.People, one)
	events := []domain.Event{&person.Invited{Grant: person.Grant{Role: one.Role, AccountID: w.AccountID}}, &person.Joined{}}
	_, err := w.append(domain.PersonStream(one.ID), events, func(domain.Event) time.Time { return w.ago(days + 1) })
	return err
}

// openProject writes a project and its webhook.
func (w *writer) openProject(n int) error {
	id, at := uuid.NewString(), w.ago(days+1)
	w.ProjectIDs = append(w.ProjectIDs, id)
	address := address(n)
	events := []domain.Event{&project.Created{AccountID: w.AccountID, Name: names[n], DefaultURL: &address, HookHash: "hook-" + id, At: at}}
	if n%3 == 1 && w.times == 1 {
		events = append(events, &project.WebhookSet{URL: "https://hooks." + host(n) + "/humanqa", At: w.ago(45)})
	}
	if (n == 1 || n == 7) && w.times == 1 {
		w.DeadHooks = append(w.DeadHooks, id)
		events = append(events, &project.WebhookDisabled{DeliveryID: uuid.NewString(), Reason: "answered 502", At: w.ago(diedAgo(n))})
	}
	_, err := w.append(domain.ProjectStream(id), events, func(e domain.Event) time.Time {
		switch e := e.(type) {
		case *project.WebhookSet:
			return e.At
		case *project.WebhookDisabled:
			return e.At
		}
		return at
	})
	return err
}

// diedAgo is the age of the end of a webhook, in days.
func diedAgo(n int) float64 { return map[int]float64{1: 34, 7: 8}[n] }

// brokenAgo is the age of the break of a project, in days.
func brokenAgo(n int) float64 {
	switch {
	case n >= broken:
		return 0
	case n >= Failing-Worse:
		return 3
	}
	return float64(9 + 2*n)
}

// tests is the number of completed tests of a project, of which all together have those
// that are not tested today.
func tests(n int) int {
	const past = Tests - Batch - waiting - Asking
	return past/Projects + map[bool]int{true: 1}[n < past%Projects] + 20*(n%5-2)
}

// testProject makes the tests of a project up to now, or to the day when it got quiet.
func (w *writer) testProject(n int) {
	last := 0.08 + 0.11*float64(n)
	if n >= Projects-Quiet {
		last = float64(16 + n%9)
	}
	count := tests(n) * w.times
	for i := range count {
		age := days - (days-last)*float64(i)/float64(count-1)
		id := uuid.NewString()
		broken := age < brokenAgo(n)
		of := w.test(n, i, id, w.ago(age))
		of.events = append(of.events, w.results(of, i, func(item int) job.ItemStatus {
			switch {
			case broken && (item == 0 || item == 3 && n%3 == 0 || item == 1 && n%7 == 0):
				return job.ItemFail
			case i < count-6 && (i*7+n)%13 == 0 && item == i%6:
				return job.ItemFail
			case (i+n)%9 == 4 && item == 5:
				return job.ItemSkip
			}
			return job.ItemPass
		})...)
		w.all = append(w.all, of)
		switch {
		case n == 0 && i == count-2:
			w.Report = id
		case n == 0 && i == count-1:
			w.Newest = id
		}
	}
}

// testToday makes the tests that have not ended, and today's batch.
func (w *writer) testToday() {
	for i := range Batch {
		of := w.test(broken+(i+spread-1)%spread, i, uuid.NewString(), w.now.Add(-35*time.Minute))
		of.submission().BatchID, of.submission().BatchIndex, of.submission().Source = w.BatchID, i, "bulk"
		if i < batchPassed+batchFailed {
			of.events = append(of.events, w.results(of, i, func(item int) job.ItemStatus {
				if i >= batchPassed && item == 2 {
					return job.ItemFail
				}
				return job.ItemPass
			})...)
		}
		w.all = append(w.all, of)
	}
	tomorrow := w.now.Add(24 * time.Hour) // the questions wait for as long as a slow machine may look at the month
	for i := range Asking {
		of := w.test(2+i, i, uuid.NewString(), w.now.Add(-30*time.Minute))
		w.Questions = append(w.Questions, of.id)
		at := w.now.Add(-time.Duration(12-5*i) * time.Minute)
		of.events = append(of.events,
			&job.Claimed{CheckerID: checker, Token: 1, DueAt: tomorrow, At: at.Add(-time.Minute)},
			&job.QuestionAsked{QuestionID: uuid.NewString(), Token: 1, ItemID: "item-1", Kind: "code", Text: questions[i],
				Until: tomorrow.Add(time.Duration(i) * time.Minute), At: at})
		w.all = append(w.all, of)
	}
	for i := range waiting {
		of := w.test(10+i, i, uuid.NewString(), w.now.Add(-time.Duration(8-i)*time.Minute))
		created := of.events[0].(*job.Created)
		created.Source, created.Items = "hosted", created.Items[:Short]
		w.all = append(w.all, of)
	}
}

// test is a test that waits.
func (w *writer) test(n, i int, id string, at time.Time) life {
	asked := checks[(n+i%6)%len(checks)]
	s := job.Submission{
		AccountID: w.AccountID, ProjectID: w.ProjectIDs[n], URL: address(n), Title: asked.title, Feature: asked.feature,
		Type: job.GeneralQA, TypeEcho: "General QA", SLAMinutes: 60, Price: price, Source: "api",
	}
	if i%2 == 0 {
		s.Source, s.Commit, s.Branch = "deploy", fmt.Sprintf("%06x%034x", (n+1)*7919*(i+3)%0xffffff, i), "main"
	}
	var items []job.Item
	for item := range 6 {
		items = append(items, itemOf(n, item))
	}
	return life{id: id, project: w.ProjectIDs[n], at: at, events: []domain.Event{&job.Created{Submission: s, Items: items, CreatedAt: at}}}
}

func (l life) submission() *job.Submission { return &l.events[0].(*job.Created).Submission }

func itemOf(n, item int) job.Item {
	c := checks[(n+item)%len(checks)]
	severity := []job.Severity{job.Major, job.Minor, job.Major, job.Critical, job.Minor, job.Minor}[item]
	if item == 0 && n%4 == 0 {
		severity = job.Critical
	}
	return job.Item{ID: fmt.Sprintf("item-%d", item+1), Key: c.key(), Description: c.item, ExpectedOutcome: c.expected, Severity: severity}
}

// results are the claim, the report and its analysis.
func (w *writer) results(of life, i int, verdict func(item int) job.ItemStatus) []domain.Event {
	created := of.events[0].(*job.Created)
	claimed := of.at.Add(time.Duration(2+i%7) * time.Minute)
	done := claimed.Add(time.Duration(6+i%17) * time.Minute)
	var items []job.ReportItem
	for at, item := range created.Items {
		r := job.ReportItem{Item: item, Status: verdict(at)}
		switch r.Status {
		case job.ItemFail:
			r.Note = checks[slices.IndexFunc(checks, func(c check) bool { return c.key() == item.Key })].seen
		case job.ItemSkip:
			r.Reason = "blocked"
		case job.ItemPass, job.ItemPending:
		}
		items = append(items, r)
	}
	pass, fail, skip := job.Counts(items)
	analysis := job.AIReport{ID: uuid.NewString(), ExecutiveSummary: "Most of the app works as expected.", PassCount: pass, FailCount: fail,
		SkipCount: skip, HealthScore: 100 * pass / len(items), GeneratedBy: "rules", At: done}
	summary := "Everything on the list works, on a phone and on a computer."
	if fail > 0 {
		summary = "The way through the app is clear. " + "One part of it does not work, see the pictures and my steps."
	}
	return []domain.Event{
		&job.Claimed{CheckerID: checker, Token: 1, DueAt: of.at.Add(time.Hour), At: claimed},
		&job.Completed{ReportID: uuid.NewString(), OverallStatus: job.OverallStatus(items), PassCount: pass, FailCount: fail,
			SkipCount: skip, Summary: summary, Items: items, At: done},
		&job.AIReportReady{AIReport: analysis},
	}
}

// writeDays writes each day: a close of a full book, the debits, then the tests, those of a project
// in order.
func (w *writer) writeDays() error {
	ledger, next := credits.State{}, domain.NoStream
	pay := func(events []domain.Event, err error, at time.Time) error {
		if err != nil {
			return err
		}
		for _, e := range events {
			ledger = credits.Evolve(ledger, e)
		}
		written, err := w.appendAt(domain.CreditsStream(w.AccountID), next, events, func(domain.Event) time.Time { return at })
		next = domain.ExpectedRevision(written.Revision)
		return err
	}
	granted, err := credits.DecideGrant(ledger, uuid.NewString(), domain.Credits(len(w.all)*price+Left), nil, "Three months", w.ago(days+1))
	if err := pay(granted, err, w.ago(days+1)); err != nil {
		return err
	}
	settled := map[string]credits.Settled{} // tests of earlier days that were completed
	for len(w.all) > 0 {
		day := w.all[0].at
		end := slices.IndexFunc(w.all, func(l life) bool { return l.at.Sub(day) > 12*time.Hour })
		if end < 0 {
			end = len(w.all)
		}
		if ledger.Full(money.CloseEvery) {
			closed, err := credits.DecideClose(ledger, settled, day)
			if err := pay(closed, err, day); err != nil {
				return err
			}
		}
		var charges []credits.Charge
		byProject := map[string][]life{}
		for _, l := range w.all[:end] {
			if slices.ContainsFunc(l.events, func(e domain.Event) bool { _, ended := e.(*job.Completed); return ended }) {
				settled[l.id] = credits.Settled{Completed: true}
			}
			charges = append(charges, credits.Charge{JobID: l.id, Amount: price, AskedAt: l.at, KnownTo: ledger.Book().Closes})
			byProject[l.project] = append(byProject[l.project], l)
		}
		w.all = w.all[end:]
		debits, err := credits.DecideDebits(ledger, charges, day)
		if err := pay(debits, err, day); err != nil {
			return err
		}
		var group errgroup.Group
		group.SetLimit(writers)
		for _, lives := range byProject {
			group.Go(func() error {
				for _, l := range lives {
					at := func(e domain.Event) time.Time { return happened(e, l.at) }
					if _, err := w.append(domain.JobStream(l.id), l.events, at); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// happened is the time of an event of a test.
func happened(e domain.Event, submitted time.Time) time.Time {
	switch e := e.(type) {
	case *job.Claimed:
		return e.At
	case *job.Completed:
		return e.At
	case *job.AIReportReady:
		return e.At
	case *job.QuestionAsked:
		return e.At
	}
	return submitted
}

func (w *writer) ago(days float64) time.Time {
	return w.now.Add(-time.Duration(days * float64(24*time.Hour))).Truncate(time.Microsecond)
}

func (w *writer) append(stream string, events []domain.Event, at func(domain.Event) time.Time) (domain.AppendResult, error) {
	return w.appendAt(stream, domain.NoStream, events, at)
}

func (w *writer) appendAt(
	stream string, next domain.ExpectedRevision, events []domain.Event, at func(domain.Event) time.Time,
) (domain.AppendResult, error) {
	batch := make([]domain.NewEvent, len(events))
	for i, e := range events {
		actor := "key:deploys"
		switch e := e.(type) {
		case *job.Claimed, *job.Completed, *job.QuestionAsked:
			actor = "checker:" + checker
		case *project.Created, *person.Invited:
			actor = "person:" + w.People[0].ID
		case *job.Created:
			actor = w.author(e.Submission)
		}
		batch[i] = domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{
			CommandID: uuid.New(), CorrelationID: uuid.NewString(), Actor: actor, AccountID: w.AccountID, Time: at(e),
		}}
	}
	return w.log.Append(w.ctx, stream, next, batch)
}

// author is the actor that submitted a test: who that is goes by the way it took.
func (w *writer) author(s job.Submission) string {
	switch s.Source {
	case "deploy":
		return "hook:" + s.ProjectID
	case "bulk":
		return "person:" + w.People[0].ID
	case "hosted":
		return "person:" + w.People[1].ID
	}
	return "key:deploys"
}

// Name gives the members their names, which are not in the log.
func (m Month) Name(ctx context.Context, db *sqlx.DB) error {
	for _, one := range m.People {
		if _, err := db.ExecContext(ctx, `INSERT INTO signin.people (person_id, name) VALUES ($1, $2)`, one.ID, one.Name); err != nil {
			return fmt.Errorf("name the members: %w", err)
		}
	}
	return nil
}

// The statements that settle the deliveries: each came with its event, and the servers that
// are up have answered at once.
var settleSQL = []string{`
UPDATE webhooks.deliveries d
SET created_at = CASE d.event
        WHEN 'job.created' THEN j.created_at
        WHEN 'job.claimed' THEN j.claimed_at
        ELSE COALESCE(j.completed_at, j.created_at)
    END
FROM readmodel.jobs j
WHERE j.account_id = $1
  AND d.ordering_key = 'job-' || j.id`, `
UPDATE webhooks.deliveries d
SET state = 'delivered', attempts = 1, last_status = 200, settled_at = d.created_at + interval '1 second'
FROM webhooks.endpoints e
WHERE e.account_id = $1
  AND e.project_id = d.project_id
  AND d.state = 'pending'`, `
UPDATE webhooks.endpoints
SET due_at = NULL, last_success_at = now() - interval '20 minutes'
WHERE account_id = $1
  AND enabled
  AND url <> ''`, `
UPDATE webhooks.endpoints
SET due_at = NULL, last_error = 'answered 502', consecutive_failures = 5, last_success_at = now() - interval '8 days'
WHERE account_id = $1
  AND NOT enabled`}

// Deliver settles the deliveries, as the dispatcher would have done. The read models and the
// subscriber of the webhooks have the month by now.
func (m Month) Deliver(ctx context.Context, db *sqlx.DB) error {
	for _, statement := range settleSQL {
		if _, err := db.ExecContext(ctx, statement, m.AccountID); err != nil {
			return fmt.Errorf("settle the deliveries: %w", err)
		}
	}
	return nil
}
