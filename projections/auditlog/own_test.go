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
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/auditlog"
	"humanqa/projections/events"
)

// An account gets its own events, without who tested, and proofs of them that the
// verifier takes that shares no code with us; another account's are none.
func TestAnAccountGetsItsOwnEventsAndTheirProofs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	feed := consumer.New(w.db, w.log.Feed, quiet, events.Projector{})
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- feed.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
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
	head, err := w.log.Head(w.ctx())
	must.NoError(t, err)
	eventually.True(t, "the feed knows the streams", func() bool {
		all, err := feed.Status(w.ctx())
		return err == nil && slices.ContainsFunc(all, func(s consumer.Status) bool {
			return s.Name == events.Name && s.Serving && s.Position.Compare(head) >= 0
		})
	})
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
	must.NoError(t, own.Events(w.ctx(), "acc", nil, nil, tell))
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
	must.NoError(t, own.Events(w.ctx(), "acc", &w.now, nil, tell)) // it is a minute later already
	must.NoError(t, own.Events(w.ctx(), "acc", nil, &events.Until{Moment: modeltest.Noon}, tell))
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
