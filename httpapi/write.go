package httpapi

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
)

const (
	// commandTime bounds a command that no longer hangs on its client.
	commandTime = 30 * time.Second
	// visibleWithin bounds the wait for the read models. The answer is sent
	// either way; only a GET right behind it could then be early.
	visibleWithin = 2 * time.Second
)

// write issues one command for the request. It goes on when the client hangs
// up: half a command heals, a whole one needs no healing.
//
// On routes that create, an Idempotency-Key makes it one command however often
// the request comes. Everything that can be refused as 400 has been by then.
func (a *API) write(r *request, do func(context.Context, command.Cause) (answer, error)) (answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), commandTime)
	defer cancel()
	cause := command.Cause{
		CommandID: command.NewCommandID(), CorrelationID: r.id,
		Actor: r.caller.actor, AccountID: r.caller.accountID, Sandbox: r.caller.sandbox, AskedAt: a.now().UTC(),
	}
	var slips []domain.Detail
	var targets []target
	if r.read != nil {
		targets = r.read.targets
		if r.route.submits {
			slips = r.read.warnings()
		}
	}
	run := func() (answer, error) {
		r.letGo()
		ans, err := do(ctx, cause)
		if err != nil {
			return ans, err
		}
		return warned(ans, slices.Concat(slips, r.notes, unresolved(ctx, targets)))
	}
	var p problems
	key, present := r.idempotencyKey(&p)
	if !r.route.creates || !present {
		return run()
	}
	if err := p.err(); err != nil {
		return answer{}, err
	}
	at := scope{owner: r.caller.owner(), path: r.effectPath(), key: key}
	fingerprint, err := a.vault.Fingerprint(ctx, at.owner, "request", digest(r))
	if err != nil {
		return answer{}, err
	}
	b, err := a.idempotency.begin(ctx, at, fingerprint, cause.CommandID)
	switch {
	case err != nil:
		return answer{}, err
	case b.stored != nil:
		return replayed(r, *b.stored)
	}
	cause.CommandID, cause.AskedAt = b.commandID, b.askedAt
	return a.settle(ctx, r, at, b, run)
}

// letGo gives the body's memory back once nobody reads in it any more: the
// command may take its time.
func (r *request) letGo() {
	r.body, r.read = nil, nil
	r.came.parsed()
}

// effectPath is what an Idempotency-Key is scoped to beside its owner: the
// path, but never with a hook's token in it, which is stored nowhere in the
// clear.
func (r *request) effectPath() string {
	if r.audience == hooks {
		return r.pattern + " of " + r.caller.projectID
	}
	return r.URL.Path
}

// digest covers what the request asks for. The API key's project is part of
// it: it is the default of a job's.
func digest(r *request) []byte {
	h := sha256.New()
	_, _ = io.WriteString(h, r.caller.projectID+"\n") // a hash never fails to write
	_, _ = h.Write(r.body)
	return h.Sum(nil)
}

// settle runs the command and stores, or gives up, what came of it. The answer
// is only sent once it is stored: whoever has seen it will see it again.
func (a *API) settle(ctx context.Context, r *request, at scope, b begun, do func() (answer, error)) (answer, error) {
	stop := a.idempotency.hold(ctx, at, b.commandID)
	returned := false
	defer func() {
		stop()
		if !returned { // a panic: the next request with this key may try at once
			a.giveUp(ctx, r, at, b.commandID, false)
		}
	}()
	ans, err := do()
	returned = true
	stop() // a key that is given up must not be leased again
	if err != nil {
		_, status := classify(r.Context(), err)
		if !definite(status) {
			a.giveUp(ctx, r, at, b.commandID, status < 500 && !b.takenOver)
			return answer{}, err
		}
		ans = refuse(r, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	earlier, err := a.idempotency.finish(ctx, at, b.commandID, ans)
	switch {
	case err != nil:
		a.giveUp(ctx, r, at, b.commandID, false)
		return answer{}, domain.Unavailable(err)
	case earlier != nil:
		return replayed(r, *earlier)
	}
	return ans, nil
}

func (a *API) giveUp(ctx context.Context, r *request, at scope, commandID uuid.UUID, nothingWritten bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if err := a.idempotency.giveUp(ctx, at, commandID, nothingWritten); err != nil {
		r.log.WithError(err).Warn("idempotency key stays leased until its lease ends")
	}
}

// replayed repeats a stored answer, byte for byte but for an error's requestId.
func replayed(r *request, stored answer) (answer, error) {
	stored.header = http.Header{"Idempotent-Replayed": {"true"}}
	if stored.status < 400 {
		return stored, nil
	}
	var err error
	if stored.body, err = readdress(stored.body, r.id); err != nil {
		return answer{}, fmt.Errorf("readdress the stored answer: %w", err)
	}
	return stored, nil
}

// visible waits until the read models show what was written.
func (a *API) visible(ctx context.Context, r *request, at domain.Position) {
	ctx, cancel := context.WithTimeout(ctx, visibleWithin)
	defer cancel()
	if err := a.waitFor(ctx, at); err != nil {
		r.log.WithError(err).WithField("position", at).Warn("answered before the read models caught up")
	}
}

// done answers a command: with its error, or with a body once the read models show
// what was written.
func (a *API) done(ctx context.Context, r *request, at domain.Position, err error, status int, body any) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	a.visible(ctx, r, at)
	return reply(status, body)
}
