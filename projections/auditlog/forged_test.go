package auditlog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/eventstore/binding"
	"humanqa/internal/testing/must"
	"humanqa/projections/auditlog"
)

// bind has the log say by which key it is proved, as a service does at its start.
func (w *world) bind() *binding.Binding {
	w.t.Helper()
	b := binding.New(w.db, w.log, func() time.Time { return w.now })
	b.BindKey(func(ctx context.Context) (string, error) {
		verifier, err := w.signer.Verifier(ctx)
		return auditlog.KeyHash(verifier), err
	})
	must.NoError(w.t, b.Bind(w.ctx()))
	return b
}

// forge puts an event at the log's end by SQL, made of the one at a position.
func (w *world) forge(position int64, stream, metadata string) {
	w.t.Helper()
	w.exec(`
		INSERT INTO eventlog.events
		SELECT (SELECT max(position) + 1 FROM eventlog.events), 0, created, gen_random_uuid(), is_json, $2, 'credits.granted',
		  '{"amount":1000000}', CASE $3 WHEN '' THEN metadata ELSE convert_to($3, 'UTF8') END
		FROM eventlog.events WHERE position = $1`, position, stream, metadata)
}

func TestAnEventThatIsPutInAtTheEndIsFoundBeforeItIsSigned(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.bind()
	w.lives(2)
	kept := w.sign()
	w.forge(3, "credits-rich", `{"commandId":"22222222-2222-4222-8222-222222222222","actor":"operator","time":"2026-03-01T12:00:00Z","schema":1}`)
	w.forge(3, "credits-richer", "") // with the MAC of another event
	w.lives(1)                       // the node finds that it is not alone
	w.grown()
	if _, _, err := w.signer.Sign(w.ctx()); !errors.Is(err, domain.ErrForged) ||
		!strings.Contains(err.Error(), "(credits.granted, revision 0 of credits-rich, position 6/6) carries no MAC: this service did not write it (2 such events since 5 events") {
		t.Errorf("a forged event is signed: %v", err)
	}
	if newest, _, err := w.signer.Newest(w.ctx()); err != nil || newest != kept {
		t.Errorf("newest %v, %v", newest, err)
	}
	_, found := w.check(kept)
	if text := told(found); len(found) != 2 || !strings.Contains(text, "[credits-rich] ") || !strings.Contains(text, "carries no MAC") ||
		!strings.Contains(text, "[credits-richer] ") || !strings.Contains(text, "carries a MAC that is not this service's") {
		t.Errorf("told\n%s", text)
	}

	load := func() error {
		return w.log.Load(w.ctx(), "credits-rich", 0, func(domain.Recorded) error { return nil })
	}
	if err := load(); !errors.Is(err, domain.ErrForged) || !strings.Contains(err.Error(), "at credits-rich@0 (position 6/6)") {
		t.Errorf("a decision is made from a forged event: %v", err)
	}
	must.NoError(t, b.AcceptKey(w.ctx(), "operator", "it was me"))
	must.NoError(t, w.log.Load(w.ctx(), origin.Stream, 0, func(domain.Recorded) error { return nil }))
	must.NoError(t, load()) // an operator answers for it
	if got := w.sign(); got.Size != 10 {
		t.Errorf("signed %v", got)
	}
	check, found := w.check(kept)
	if told(found) != "" || check.Bound().At.Commit != 10 {
		t.Errorf("behind an operator's word, %+v: %s", check.Bound(), told(found))
	}
}

func TestALogOlderThanMACsSaysFromWhereTheyBegin(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.log.Authenticate(nil)
	w.lives(2)
	must.NoError(t, binding.New(w.db, w.log, time.Now).Bind(w.ctx())) // an older version's
	w.sign()
	w.log.Authenticate(w.vault.MACKeys)
	if check, found := w.check(); told(found) != "" || check.Bound().Key != "" {
		t.Errorf("before: %+v %s", check.Bound(), told(found))
	}
	w.bind()
	w.bind() // once is enough
	w.lives(1)
	if got := w.sign(); got.Size != 8 {
		t.Errorf("signed %v", got)
	}
	if check, found := w.check(); told(found) != "" || check.Bound().At.Commit != 6 {
		t.Errorf("behind it: %+v %s", check.Bound(), told(found))
	}
}

func TestAnAuditThatProvesNothingSaysSo(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind()
	w.lives(1)
	w.grown()
	w.now = time.Now().Add(time.Minute)
	if _, found := w.check(); told(found) != "" {
		t.Errorf("a young log: %s", told(found))
	}
	w.now = time.Now().Add(time.Hour)
	if _, found := w.check(); !strings.Contains(told(found), " and has no checkpoint: nothing proves it") {
		t.Errorf("an old log without a checkpoint: %s", told(found))
	}
	w.sign()
	w.lives(1)
	w.sign()
	if _, found := w.check(); told(found) != "" {
		t.Errorf("a log with checkpoints: %s", told(found))
	}
	w.exec(`DELETE FROM audit.checkpoints WHERE size = 3`)
	if _, found := w.check(); told(found) != "[] the database has 1 checkpoints, up to 5 events; 2 were signed, up to 5\n" {
		t.Errorf("a checkpoint that was taken away: %s", told(found))
	}
	w.exec(`DELETE FROM audit.checkpoints`)
	w.exec(`DELETE FROM audit.keys`)
	if _, found := w.check(); !strings.Contains(told(found), "the signing key was made anew: the log is bound to the key with SHA-256 ") {
		t.Errorf("a key that was made anew: %s", told(found))
	}
	w.sign()
	if _, found := w.check(); len(found) != 1 || !strings.Contains(told(found), "the signing key was made anew") {
		t.Errorf("with a checkpoint under it: %s", told(found))
	}
}
