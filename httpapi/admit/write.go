package admit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/internal/tracing"
)

// VisibleWithin bounds the wait for the read models. The answer is sent either way; a
// GET right after it may then show older state (decisions, "A read after a write").
const VisibleWithin = 2 * time.Second

// Writer issues the commands of requests.
type Writer struct {
	Keys        keyStore
	WaitFor     func(context.Context, domain.Position) error // until every read model shows the position
	submissions func() []wire.Submission                     // for warnings of another call's fields
	now         func() time.Time
}

func NewWriter(
	db *sqlx.DB, v command.Sealer, waitFor func(context.Context, domain.Position) error,
	submissions func() []wire.Submission, now func() time.Time,
) *Writer {
	return &Writer{Keys: keyStore{db: db, Vault: v}, WaitFor: waitFor, submissions: submissions, now: now}
}

// Write issues one command for the request. It goes on when the client hangs up, up to the
// request's deadline: a command cut in half would need repair.
//
// On routes that create, an Idempotency-Key makes it one command however often the
// request comes. An invalid request has been refused before.
func (w *Writer) Write(r *wire.Request, do func(context.Context, command.Cause) (wire.Answer, error)) (wire.Answer, error) {
	r.Commanded = true
	deadline, _ := r.Context().Deadline() // every request has one
	ctx, cancel := context.WithDeadline(context.WithoutCancel(r.Context()), deadline)
	defer cancel()
	cause := command.Cause{
		CommandID: domain.NewCommandID(), CorrelationID: r.ID, Trace: tracing.Of(ctx),
		Actor: r.Caller.Actor, AccountID: r.Caller.AccountID, ProjectID: r.Caller.ProjectID, Sandbox: r.Caller.Sandbox,
		AskedAt: w.now().UTC(),
	}
	var slips []domain.Detail
	if r.Read != nil && r.Route.Submits {
		slips = r.Read.Warnings(w.submissions())
	}
	run := func() (wire.Answer, error) {
		r.ReleaseBody()
		ans, err := do(ctx, cause)
		if err != nil {
			return ans, err
		}
		warnings := slices.Concat(slips, r.Notes)
		if r.Unresolved != nil {
			warnings = append(warnings, r.Unresolved(ctx)...)
		}
		return wire.Warned(ans, warnings)
	}
	var p wire.Problems
	key, present := r.IdempotencyKey(&p)
	if !r.Route.Creates || !present {
		return run()
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	at := KeyScope{Owner: r.Caller.Owner(), Path: effectPath(r), Key: key}
	fingerprint, err := w.Keys.Vault.Fingerprint(ctx, at.Owner, "request", digest(r))
	if err != nil {
		return wire.Answer{}, err
	}
	b, err := w.Keys.claimKey(ctx, at, fingerprint, cause.CommandID)
	switch {
	case err != nil:
		return wire.Answer{}, err
	case b.stored != nil:
		return replayed(r, *b.stored)
	}
	cause.CommandID, cause.AskedAt = b.commandID, b.askedAt
	return w.runOnce(ctx, r, at, b, run)
}

// WriteUnless is Write for a request that may have been refused before.
func (w *Writer) WriteUnless(
	refused error, r *wire.Request, do func(context.Context, command.Cause) (wire.Answer, error),
) (wire.Answer, error) {
	if refused != nil {
		return wire.Answer{}, refused
	}
	return w.Write(r, do)
}

// effectPath is the path in the scope of an Idempotency-Key. It never holds a hook's
// token, which is stored nowhere in the clear.
func effectPath(r *wire.Request) string {
	if r.Audience == wire.Hooks {
		return r.RoutePattern + " of " + r.Caller.ProjectID
	}
	return r.URL.Path
}

// digest covers what the request asks for. The API key's project is part of
// it: it is the default of a job's.
func digest(r *wire.Request) []byte {
	h := sha256.New()
	_, _ = io.WriteString(h, r.Caller.ProjectID+"\n") // a hash never fails to write
	_, _ = h.Write(r.Content)
	return h.Sum(nil)
}

// runOnce runs the command, and stores a definite outcome or releases the key. The answer
// is only sent once it is stored, so that a repeat gets the same answer.
func (w *Writer) runOnce(
	ctx context.Context, r *wire.Request, at KeyScope, b claimedKey, do func() (wire.Answer, error),
) (wire.Answer, error) {
	stop := w.Keys.holdLease(ctx, at, b.commandID)
	returned := false
	defer func() {
		stop()
		if !returned { // a panic: the next request with this key may try at once
			w.releaseKey(ctx, r, at, b.commandID, false)
		}
	}()
	ans, err := do()
	returned = true
	stop() // a key that is released must not be leased again
	if err != nil {
		_, status := wire.Classify(ctx, err) // that the client has gone says nothing of what was written
		if !definite(status) {
			w.releaseKey(ctx, r, at, b.commandID, status < 500 && !b.takenOver)
			return wire.Answer{}, err
		}
		ans = wire.Refuse(r, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	earlier, err := w.Keys.StoreAnswer(ctx, at, b.commandID, ans)
	switch {
	case err != nil:
		w.releaseKey(ctx, r, at, b.commandID, false)
		return wire.Answer{}, domain.Unavailable(err)
	case earlier != nil:
		return replayed(r, *earlier)
	}
	return ans, nil
}

func (w *Writer) releaseKey(ctx context.Context, r *wire.Request, at KeyScope, commandID uuid.UUID, nothingWritten bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if err := w.Keys.releaseKey(ctx, at, commandID, nothingWritten); err != nil {
		r.Log.WithError(err).Warn("idempotency key stays leased until its lease ends")
	}
}

// replayed repeats a stored answer, byte for byte but for an error's requestId.
func replayed(r *wire.Request, stored wire.Answer) (wire.Answer, error) {
	stored.Header = http.Header{"Idempotent-Replayed": {"true"}}
	if stored.Status < 400 {
		return stored, nil
	}
	var err error
	if stored.Body, err = wire.Readdress(stored.Body, r.ID); err != nil {
		return wire.Answer{}, fmt.Errorf("readdress the stored answer: %w", err)
	}
	return stored, nil
}

// Visible waits until the read models show the write.
func (w *Writer) Visible(ctx context.Context, r *wire.Request, at domain.Position) {
	ctx, cancel := context.WithTimeout(ctx, VisibleWithin)
	defer cancel()
	if err := w.WaitFor(ctx, at); err != nil {
		r.Log.WithError(err).WithField("position", at).Warn("answered before the read models caught up")
	}
}

// Done answers a command: with its error, or with a body once the read models show the
// write.
func (w *Writer) Done(ctx context.Context, r *wire.Request, at domain.Position, err error, status int, body any) (wire.Answer, error) {
	if err != nil {
		return wire.Answer{}, err
	}
	w.Visible(ctx, r, at)
	return wire.Reply(status, body)
}
