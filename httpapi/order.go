package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/httpapi/admit"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/tracing"
)

const (
	// authenticateTime bounds the look-up of a request's caller, and its count.
	authenticateTime = 10 * time.Second
	// requestTime bounds all steps of a request together, without the arrival of its body
	// and a wait that it asks for (decisions, "One patience").
	requestTime = 20 * time.Second
)

// ServeHTTP takes every request the same way, whatever its path and method.
func (a *API) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	started := time.Now()
	r := &wire.Request{Request: hr, Match: a.table.find(hr), ID: wire.RequestID(hr.Header)}
	method := wire.LoggedMethod(hr.Method)
	ctx, span := a.Tracer.StartRequest(hr.Context(), hr.Header, method, r.RouteName(), r.ID)
	defer span.End()
	if a.Tracer != nil {
		hr = hr.WithContext(ctx)
		r.Request = hr
	}
	r.Log = tracing.Log(hr.Context(), a.Log).WithFields(logrus.Fields{"requestId": r.ID, "method": method, "route": r.RouteName()})
	if r.Route != nil && r.Route.Method == http.MethodGet {
		w, r.Request = wire.AsGet(w, hr)
	}
	h := w.Header()
	h.Set(wire.RequestIDHeader, r.ID)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")

	a.metrics.open.Inc()
	defer a.metrics.open.Dec()
	ans := a.answer(w, r)
	a.Refusals.note(r, ans)
	sent := 0
	span.Answered(ans.Status)
	switch {
	case ans.Stream != nil:
		span.End()                                                                // as the measured time does
		a.metrics.observe(method, r.RouteName(), ans.Status, time.Since(started)) // its body has no due time
		sent = ans.SendStream(r, w)
		a.logAccess(r, ans.Status, sent, time.Since(started))
		return
	case ans.Status != wire.StatusClientGone:
		sent = ans.Send(w)
	}
	took := time.Since(started)
	a.metrics.observe(method, r.RouteName(), ans.Status, took)
	a.logAccess(r, ans.Status, sent, took)
	if ans.Status == http.StatusRequestEntityTooLarge {
		wire.Drain(w, hr)
	}
}

// answer never fails: a refusal and a panic are answers, too.
func (a *API) answer(w http.ResponseWriter, r *wire.Request) (ans wire.Answer) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(p)
		}
		r.Log.WithField("stack", string(debug.Stack())).Error("panic")
		ans = wire.Refuse(r, fmt.Errorf("panic: %v", p))
	}()
	ans, err := a.handle(w, r)
	if err != nil {
		return wire.Refuse(r, err)
	}
	return ans
}

// handle is the order of checks (decisions, "Order of checks") up to the handler.
func (a *API) handle(w http.ResponseWriter, r *wire.Request) (wire.Answer, error) {
	if a.Halted != nil && (r.Audience != wire.Public || r.RoutePattern == "") {
		if err := a.Halted(); err != nil {
			return wire.Answer{}, err
		}
	}
	admitted := time.Now()
	if err := a.admit(w.Header(), r); err != nil {
		return wire.Answer{}, err
	}
	left := cmp.Or(a.RequestTime, requestTime) - time.Since(admitted)
	body, err := a.Spool.ReadBody(w, r.Request, r.Caller)
	if err != nil {
		return wire.Answer{}, err
	}
	defer body.Close()
	r.Upload = body
	switch {
	case r.RoutePattern == "":
		hint := "GET /docs shows the paths there are"
		if near := a.table.nearest(r.URL.Path); near != nil {
			hint = "did you mean " + strings.Join(near, " or ") + "? " + hint
		}
		return wire.Answer{}, domain.NotFound("path").WithHint("%s", hint)
	case r.Route == nil:
		return wire.Answer{}, wire.WithHeader(&domain.Error{
			Kind: domain.KindMethod, Code: domain.CodeMethodNotAllowed,
			Message: "the method is not allowed here", Hint: "allowed: " + r.Allow,
		}, "Allow", r.Allow)
	}
	// timed is a copy: once the handler is done and its context cancelled, r's own
	// context still says whether the client is there.
	timed := *r
	if !r.Route.Upload { // a file is read where it lies
		if timed.Content, err = body.Load(r.Context()); err != nil {
			return wire.Answer{}, err
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), left+r.Route.Waits)
	defer cancel()
	timed.Request = r.WithContext(ctx)
	leaveLoad, err := a.load.Return(ctx, r.Match, r.Caller.AccountID)
	if err != nil {
		return wire.Answer{}, err
	}
	defer leaveLoad()
	timed.LeaveLoad = leaveLoad
	if err := a.refuseMoment(&timed); err != nil {
		return wire.Answer{}, err
	}
	if r.Route.Past && timed.NamesMoment() {
		leave, err := a.PastReads.Enter("reads of the past", r.Caller.AccountID)
		if err != nil {
			return wire.Answer{}, err
		}
		defer leave()
	}
	if r.Route.AllProjects && r.Caller.ProjectID != "" {
		return wire.Answer{}, v1.ErrOtherProject
	}
	ans, err := admit.AtHead(ctx, a.Fresh, func() (wire.Answer, error) {
		timed.Looked, timed.Notes, timed.Asked = map[string]bool{}, nil, nil
		return a.positioned(&timed)
	}, func(ans wire.Answer, err error) bool { return saysNotYet(&timed, ans, err) })
	r.Asked = timed.Asked
	if err != nil {
		return ans, err
	}
	return timed.WarnedOfQuery(ans), nil
}

// positioned calls the handler. A read of today's state names the position that the read
// models showed before, at which ?asOf= has the answer again (decisions, "asOf").
func (a *API) positioned(r *wire.Request) (wire.Answer, error) {
	if !r.Route.Past || r.NamesMoment() || a.Shown == nil {
		return r.Route.Handle(r)
	}
	at, shownErr := a.Shown(r.Context())
	r.Shown = at
	ans, err := r.Route.Handle(r)
	waited := r.Route.Waits > 0 && r.URL.Query().Has("wait")
	if err != nil || shownErr != nil || at == (domain.Position{}) || waited {
		return ans, err
	}
	if ans.Header == nil {
		ans.Header = http.Header{}
	}
	ans.Header.Set(positionHeader, a.clients.CursorAt(at))
	return ans, nil
}

// positionHeader is the position of a read's answer.
const positionHeader = "X-Log-Position"

// saysNotYet says that the answer denies something that an event may have brought about which
// the read models do not show yet (decisions, "Not yet"). A command has looked at the log
// itself, and is not issued twice.
func saysNotYet(r *wire.Request, ans wire.Answer, err error) bool {
	switch {
	case r.Caller.Actor == "", r.Commanded, r.Route.Upload:
		return false
	case err != nil:
		return domain.IsKind(err, domain.KindNotFound) || r.Method == http.MethodGet && domain.IsKind(err, domain.KindConflict)
	}
	return ans.Status == http.StatusAccepted && r.Method == http.MethodGet
}

// admit finds the caller of a request, counts it, and checks its right to write.
func (a *API) admit(h http.Header, r *wire.Request) error {
	if err := a.authenticate(h, r); err != nil {
		return err
	}
	return admit.MayWrite(r) // counted like any call: guessing is not free
}

// authenticate finds the caller of a request and counts it. No place among the requests
// under way is held while the body arrives: a client may be slow.
func (a *API) authenticate(h http.Header, r *wire.Request) error {
	leave, err := a.load.Enter(r.Context(), r.Match)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(r.Context(), authenticateTime)
	defer cancel()
	timed := *r // r's own context still says whether the client is there
	timed.Request = r.WithContext(ctx)
	caller, counted, err := a.gate.Authenticate(ctx, r.Header, r.Match)
	timed.Caller, r.Caller = caller, caller // of a suspended account, too
	if err != nil {
		if admit.NoCredential(err) {
			err = a.gate.LimitStranger(&timed, h, err)
		}
		return err
	}
	return a.gate.LimitCaller(&timed, counted, h)
}

// Authorize admits and counts a request of a client that another handler serves. It gives
// the caller's name, or the refusal to send.
func (a *API) Authorize(w http.ResponseWriter, hr *http.Request, route string) (actor string, refusal *wire.Answer) {
	started := time.Now()
	match := wire.Match{Audience: wire.Clients, RoutePattern: route}
	r := &wire.Request{Request: hr, Match: match, ID: wire.RequestID(hr.Header)}
	r.Log = tracing.Log(hr.Context(), a.Log).WithFields(logrus.Fields{
		"requestId": r.ID, "method": wire.LoggedMethod(hr.Method), "route": route,
	})
	w.Header().Set(wire.RequestIDHeader, r.ID)
	var err error
	if a.Halted != nil {
		err = a.Halted()
	}
	if err == nil {
		err = a.authenticate(w.Header(), r)
	}
	if err == nil {
		return r.Caller.Actor, nil
	}
	ans := wire.Refuse(r, err)
	a.logAccess(r, ans.Status, len(ans.Body), time.Since(started))
	return "", &ans
}

func (a *API) logAccess(r *wire.Request, status, sent int, took time.Duration) {
	fields := logrus.Fields{
		"status": status, "bytes": sent, "millis": float64(took.Microseconds()) / 1000, "path": r.LoggedPath(),
	}
	if a.LogAddresses {
		fields["address"] = admit.Address(r.RemoteAddr)
	}
	if r.Caller.AccountID != "" {
		fields["accountId"] = r.Caller.AccountID
	}
	if r.Caller.Actor != "" {
		fields["actor"] = r.Caller.Actor
	}
	level := logrus.InfoLevel
	if r.Audience == wire.Public && status < http.StatusBadRequest {
		level = logrus.DebugLevel // probes, every few seconds
	}
	r.Log.WithFields(fields).Log(level, "request")
}

// refuseMoment refuses ?asOf= on a read that shows no state of the past.
func (a *API) refuseMoment(r *wire.Request) error {
	if r.Route.Past || r.Route.Write || r.Audience == wire.Checkers || r.Audience == wire.Hooks || !r.NamesMoment() {
		return nil
	}
	var p wire.Problems
	p.Add("asOf", "means nothing here: it is taken by GET %s", strings.Join(a.table.past, ", "))
	return p.Err()
}
