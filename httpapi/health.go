package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi/wire"
)

const (
	// readyTime bounds the look at every part: a part that hangs is not ready.
	readyTime = 5 * time.Second
	// readyFor is the time for which a result is used again.
	readyFor = time.Second
)

// readiness looks at every part once for all requests of the same time, and keeps the
// result for a moment: the route is public, and a look costs several queries.
type readiness struct {
	look func(context.Context) []Problem
	log  logrus.FieldLogger

	mu    sync.Mutex // held during the look, so that other requests wait for its result
	found []Problem
	until time.Time
}

func (r *readiness) problems(ctx context.Context) []Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.found
	}
	// The first client may hang up; the others still need the result.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	before := r.found
	r.found = r.look(ctx)
	r.until = time.Now().Add(readyFor)
	for _, p := range r.found {
		// A problem that lasts has one line, not one a second.
		told := slices.ContainsFunc(before, func(b Problem) bool {
			return b.Part == p.Part && b.Note == p.Note && fmt.Sprint(b.Cause) == fmt.Sprint(p.Cause)
		})
		line := r.log.WithField("part", p.Part)
		switch {
		case told:
		case p.Cause != nil:
			line.WithError(p.Cause).Warn("not ready")
		case !p.Note:
			line.Warnf("not ready: %s", p.Reason)
		}
	}
	return r.found
}

type healthBody struct {
	Status string `json:"status"`
	// Notes tell an operator about parts that do not keep the service from its work.
	Notes []Problem `json:"notes,omitempty"`
}

// healthz is GET /healthz: the process answers.
func (a *API) healthz(*wire.Request) (wire.Answer, error) {
	return wire.Reply(http.StatusOK, healthBody{Status: "ok"})
}

// readyz is GET /readyz: log, Postgres and projections are there and caught
// up; else 503 with every reason.
func (a *API) readyz(r *wire.Request) (wire.Answer, error) {
	var notes, problems []Problem
	if a.leaving.Load() { // not in the look, whose result is used for a second more
		problems = append(problems, Problem{Part: "service", Reason: "it is stopping"})
	}
	for _, p := range a.ready.problems(r.Context()) {
		if p.Note {
			notes = append(notes, p)
		} else {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		unready := &domain.Error{
			Kind: domain.KindUnavailable, Code: domain.CodeUnavailable, Message: problems[0].Part + ": " + problems[0].Reason,
		}
		return wire.Answer{}, wire.RetryAfter(unready.With("problems", problems), int(readyFor/time.Second))
	}
	return wire.Reply(http.StatusOK, healthBody{Status: "ready", Notes: notes})
}
