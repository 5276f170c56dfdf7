package auditlog_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/auditlog"
	"humanqa/projections/events"
)

// feed keeps the feed of events until the test ends. caughtUp waits for it and for the tree.
func (w *world) feed() (caughtUp func()) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	feed := consumer.New(w.db, w.log.Feed, quiet, events.Projector{})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- feed.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Error(err)
		}
	})
	return func() {
		w.t.Helper()
		w.grown()
		head, err := w.log.Head(w.ctx())
		must.NoError(w.t, err)
		eventually.True(w.t, "the feed knows the streams", func() bool {
			all, err := feed.Status(w.ctx())
			return err == nil && slices.ContainsFunc(all, func(s consumer.Status) bool {
				return s.Name == events.Name && s.Serving && s.Position.Compare(head) >= 0
			})
		})
	}
}

// An account gets its own events, without who tested, and proofs of them that the
// verifier takes that shares no code with us; another account's are none.
func TestAnAccountGetsItsOwnEventsAndTheirProofs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	caughtUp := w.feed()
	ids, next := map[string]uuid.UUID{}, map[string]domain.ExpectedRevision{}
	write := func(name, stream string, meta domain.Metadata, e domain.Event) {
		t.Helper()
		ids[name] = uuid.New()
		meta.Time = w.now
		expected, begun := next[stream]
		if !begun {
			expected = domain.NoStream
		}
		next[stream] = expected + 1
		_, err := w.log.Append(w.ctx(), stream, expected, []domain.NewEvent{{ID: ids[name], Event: e, Meta: meta}})
		must.NoError(t, err)
	}
	operator, key, checker := domain.Metadata{Actor: "operator:ann"}, domain.Metadata{Actor: "key:k", AccountID: "acc"}, domain.Metadata{Actor: "checker:bob"}
	for _, of := range []string{"acc", "other"} {
		write(of+" opened", domain.AccountStream(of), operator, &account.Created{Name: of})
		write(of+" granted", domain.CreditsStream(of), operator, &credits.Granted{LotID: "l", Amount: 10, BalanceAfter: 10})
		write(of+" created", domain.JobStream("of-"+of), key, modeltest.Created(of, func(e *job.Created) { e.Credentials = "v1.sealed" }))
	}
	write("claimed", domain.JobStream("of-acc"), checker, modeltest.Claimed("bob"))
	w.now = w.now.Add(time.Hour)
	write("cancelled", domain.JobStream("of-acc"), key, &job.Cancelled{Reason: "client", At: w.now})
	w.sign()
	caughtUp()
	own := auditlog.NewOwn(w.log.Client, w.db, w.signer)

	var rows []string
	tell := func(row []any) error {
		data, ok := row[10].(json.RawMessage)
		if !ok || !json.Valid(data) || row[0].(int64) <= 0 {
			t.Errorf("%v", row)
		}
		rows = append(rows, strings.Join([]string{row[2].(string), row[5].(string), row[7].(string)}, " ")+" "+string(data))
		return nil
	}
	must.NoError(t, own.Events(w.ctx(), "acc", auditlog.Span{}, tell))
	all := strings.Join(rows, "\n")
	for i, want := range []string{"account-acc account.created operator {", "credits-acc credits.granted operator {", "job-of-acc job.created key:k {", "job-of-acc job.claimed checker {", "job-of-acc job.cancelled key:k {"} {
		if i >= len(rows) || !strings.HasPrefix(rows[i], want) {
			t.Fatalf("row %d is not %s:\n%s", i, want, all)
		}
	}
	for _, hidden := range []string{"bob", "ann", "other", "v1."} {
		if strings.Contains(all, hidden) {
			t.Errorf("%q is told:\n%s", hidden, all)
		}
	}
	if len(rows) != 5 || !strings.Contains(all, `"[sealed]"`) || !strings.Contains(all, `"[withheld]"`) {
		t.Errorf("got\n%s", all)
	}
	rows = nil
	must.NoError(t, own.Events(w.ctx(), "acc", auditlog.Span{Since: &w.now}, tell)) // it is a minute later already
	must.NoError(t, own.Events(w.ctx(), "acc", auditlog.Span{Then: &events.Until{Moment: modeltest.Noon}}, tell))
	if len(rows) != 4 || !strings.HasPrefix(rows[3], "job-of-acc job.claimed") {
		t.Errorf("until noon there were\n%s", strings.Join(rows, "\n"))
	}

	for name, shown := range map[string][2]bool{"acc opened": {true, false}, "acc created": {false, true}, "claimed": {false, false}, "cancelled": {true, true}} {
		proof, err := own.Proof(w.ctx(), "acc", ids[name])
		must.NoError(t, err)
		if got := [2]bool{proof.Event.Data != nil, proof.Event.Meta != nil}; got != shown {
			t.Errorf("%s: data and metadata are shown: %v", name, got)
		}
		text, err := json.Marshal(proof)
		must.NoError(t, err)
		if out, ok := w.standalone(w.file(string(text))); !ok || !strings.Contains(out, "ok: event "+ids[name].String()) {
			t.Errorf("%s: %s", name, out)
		}
		if proof.Event.Data != nil {
			changed := strings.Replace(string(text), "acc", "bcc", 1)
			if _, ok := w.standalone(w.file(changed)); ok && changed != string(text) {
				t.Errorf("%s: a proof that was changed holds", name)
			}
		}
	}
	write("late", domain.JobStream("of-acc"), key, &job.Rated{Rating: 5})
	w.grown()
	for name, id := range map[string]uuid.UUID{"another account's": ids["other created"], "another account's ledger": ids["other granted"], "none": uuid.New(), "behind the checkpoint": ids["late"]} {
		if _, err := own.Proof(w.ctx(), "acc", id); !domain.IsKind(err, domain.KindNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// countedLog counts the events that are read of a log.
type countedLog struct {
	*eventstore.Client

	read int
}

func (l *countedLog) ReadAllRaw(
	ctx context.Context, after domain.Position, fromStart bool, maxEvents int,
) (page []eventstore.RawEvent, next domain.Position, end bool, err error) {
	page, next, end, err = l.Client.ReadAllRaw(ctx, after, fromStart, maxEvents)
	l.read += len(page)
	return page, next, end, err
}

// An account's events are read in the log's order, in parts that meet without a gap, and
// without most of the events of others between them. Those behind the end of the tree count.
func TestAnExportOfEventsReadsFewOfOthersAndGoesOnBehindAnyOfThem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	caughtUp := w.feed()
	begun := map[string]domain.ExpectedRevision{}
	write := func(at time.Time, stream string, events ...domain.Event) {
		t.Helper()
		expected, found := begun[stream]
		if !found {
			expected = domain.NoStream
		}
		batch := make([]domain.NewEvent, len(events))
		for i, e := range events {
			batch[i] = domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{Time: at, Actor: "operator"}}
		}
		_, err := w.log.Append(w.ctx(), stream, expected, batch)
		must.NoError(t, err)
		begun[stream] = expected + domain.ExpectedRevision(len(events))
	}
	many := func() {
		grants := make([]domain.Event, 500)
		for i := range grants {
			grants[i] = &credits.Granted{LotID: "l", Amount: 1, BalanceAfter: 1}
		}
		for range 4 {
			write(w.now, domain.CreditsStream("other"), grants...)
		}
	}
	hour := func(n int) time.Time { return w.now.Add(time.Duration(n) * time.Hour) }
	many()
	write(hour(0), domain.AccountStream("acc"), &account.Created{Name: "acc"})
	write(hour(1), domain.JobStream("a"), modeltest.Created("acc"))
	many()
	write(hour(2), domain.JobStream("b"), modeltest.Created("acc"), modeltest.Claimed("bob"))
	write(hour(3), domain.JobStream("a"), modeltest.Claimed("bob"))
	many()
	write(hour(4), domain.AccountStream("acc"), &account.Suspended{Reason: "debt"})
	caughtUp()

	log := &countedLog{Client: w.log.Client}
	own := auditlog.NewOwn(log, w.db, w.signer)
	var places []domain.Position
	export := func(span auditlog.Span) []string {
		t.Helper()
		found := []string{}
		places = nil
		must.NoError(t, own.Events(w.ctx(), "acc", span, func(row []any) error {
			found = append(found, row[2].(string)+" "+row[5].(string))
			places = append(places, domain.Position{Commit: uint64(row[0].(int64)), Prepare: uint64(row[1].(int64))})
			return nil
		}))
		return found
	}
	want := []string{
		"account-acc account.created", "job-a job.created", "job-b job.created", "job-b job.claimed", "job-a job.claimed", "account-acc account.suspended",
	}
	modeltest.Same(t, export(auditlog.Span{}), want)
	if log.read > 500 {
		t.Errorf("%d events were read for %d", log.read, len(want))
	}
	at := places
	for i, p := range at {
		modeltest.Same(t, export(auditlog.Span{After: p}), want[i+1:])
		modeltest.Same(t, export(auditlog.Span{Then: &events.Until{Position: p}}), want[:i+1])
	}
	log.read = 0
	from, to := hour(1), hour(3)
	modeltest.Same(t, export(auditlog.Span{Since: &from, Until: &to}), want[1:4])
	modeltest.Same(t, export(auditlog.Span{Since: &to}), want[4:])
	modeltest.Same(t, export(auditlog.Span{Until: &from}), want[:1])
	modeltest.Same(t, export(auditlog.Span{Then: &events.Until{Moment: to}}), want[:5])
	if log.read > 2000 {
		t.Errorf("%d events were read for parts of %d", log.read, len(want))
	}

	w.stop() // the tree ends here
	write(hour(5), domain.JobStream("a"), &job.Cancelled{Reason: "client", At: hour(5)})
	modeltest.Same(t, export(auditlog.Span{After: at[len(at)-1]}), []string{"job-a job.cancelled"})
}
