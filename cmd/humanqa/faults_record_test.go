package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"humanqa/internal/testing/history"
)

const (
	// answersWithin bounds an answer over a healthy connection: the sum of the limits of a
	// look-up of the key, of a handler, of a command and of the storing of its answer.
	answersWithin = 85 * time.Second
	// impatient is when a client hangs up that does not wait for its answer.
	impatient = 2 * time.Second
)

// recorder makes the attempts of a load, over one of the services each, and records them.
type recorder struct {
	t        *testing.T
	services []*part // clients' proxies, one a service
	history  *history.History
	start    time.Time

	mu      sync.Mutex // guards all below
	dice    *rand.Rand
	names   map[string]string // of accounts and checkers, by key: a drawing must not show a key
	clients map[string]int    // by name
	answers map[string]int    // by kind and outcome
	longest time.Duration     // of an answer over a healthy connection
	slowest string            // its call
}

func newRecorder(t *testing.T, dice *rand.Rand, services ...*part) *recorder {
	return &recorder{
		t: t, services: services, history: history.New(5), start: time.Now(), dice: dice,
		names: map[string]string{}, clients: map[string]int{}, answers: map[string]int{},
	}
}

// know names a key's owner.
func (x *recorder) know(key, name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.names[key], x.clients[name] = name, len(x.clients)
}

// draw chooses the service of an attempt, and how long its client waits.
func (x *recorder) draw() (*part, time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	limit := answersWithin
	if x.dice.IntN(8) == 0 {
		limit = impatient
	}
	return x.services[x.dice.IntN(len(x.services))], limit
}

// attempt is one request, and its record.
func (x *recorder) attempt(method, path, key string, body any, header ...string) (reply, error) {
	service, limit := x.draw()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	healthy, changes := !service.broken.Load(), service.changes.Load()
	begin := time.Now()
	r, err := service.seen.tryIn(ctx, method, path, key, body, header...)
	end := time.Now()
	if healthy = healthy && service.changes.Load() == changes; healthy {
		x.mu.Lock()
		if took := end.Sub(begin); took > x.longest {
			x.longest, x.slowest = took, method+" "+path
		}
		x.mu.Unlock()
		if end.Sub(begin) >= answersWithin {
			x.t.Errorf("%s %s hung for %s over a healthy connection: %v", method, path, end.Sub(begin), err)
		}
	}
	if r.status >= 500 && (r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "") {
		x.t.Errorf("%s %s: %d %s, want a 503 that says when to come again", method, path, r.status, r.body)
	}
	x.note(method, path, key, body, header, r, err, begin, end)
	return r, err
}

// routes are the calls that are recorded. The job's id is the last part.
var routes = []struct {
	kind    history.Kind
	pattern *regexp.Regexp
}{
	{history.Submit, regexp.MustCompile(`^POST /v1/jobs()$`)},
	{history.Cancel, regexp.MustCompile(`^POST /v1/jobs/([^/]+)/cancel$`)},
	{history.ReadJob, regexp.MustCompile(`^GET /v1/jobs/([^/?]+)$`)},
	{history.ReadCredits, regexp.MustCompile(`^GET /v1/credits()$`)},
	{history.Claim, regexp.MustCompile(`^POST /v1/checker/claims()$`)},
	{history.Release, regexp.MustCompile(`^POST /v1/checker/jobs/([^/]+)/release$`)},
	{history.Complete, regexp.MustCompile(`^POST /v1/checker/jobs/([^/]+)/complete$`)},
}

func (x *recorder) note(method, path, key string, body any, header []string, r reply, err error, begin, end time.Time) {
	c := history.Call{Begin: int64(begin.Sub(x.start)), End: int64(end.Sub(x.start))}
	for _, route := range routes {
		if m := route.pattern.FindStringSubmatch(method + " " + path); m != nil {
			c.Kind, c.Job = route.kind, m[1]
		}
	}
	if c.Kind == "" {
		return
	}
	sent := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		sent.Set(header[i], header[i+1])
	}
	c.Request, c.Key = sent.Get("X-Request-Id"), sent.Get("Idempotency-Key")
	c.Token, _ = strconv.Atoi(sent.Get("X-Claim-Token")) // 0 without one
	x.mu.Lock()
	name := x.names[key]
	c.Client = x.clients[name]
	x.mu.Unlock()
	if strings.HasPrefix(path, "/v1/checker/") {
		c.Checker = name
	} else {
		c.Account = name
	}
	if asked, ok := body.(map[string]any); ok && c.Kind == history.Claim {
		c.Job, _ = asked["jobId"].(string)
	}
	c.Outcome = outcome(r, err)
	holdsAnother := c.Kind == history.Claim && c.Outcome == history.Refused && r.field("claimedJobs") != nil
	x.mu.Lock()
	x.answers[string(c.Kind)+" "+string(c.Outcome)]++
	x.mu.Unlock()
	if !holdsAnother { // such a refusal says nothing about this job
		x.history.Add(asAnswered(c, r))
	}
}

// did says that a call of the kind had the outcome.
func (x *recorder) did(kind history.Kind, outcome history.Outcome) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.answers[string(kind)+" "+string(outcome)] > 0
}

// outcome is unknown also for a submission of which an earlier request is still in flight:
// that may have been this call's own, sent on a connection that broke and was replaced.
func outcome(r reply, err error) history.Outcome {
	switch {
	case err != nil || r.status >= 500:
		return history.Unknown
	case r.status < 300:
		return history.Done
	case r.status == http.StatusPaymentRequired:
		return history.Short
	case r.status == http.StatusNotFound:
		return history.Absent
	case r.status == http.StatusConflict && strings.Contains(string(r.body), "abandoned"):
		return history.Abandoned
	case r.status == http.StatusConflict && r.header.Get("Retry-After") != "":
		return history.Unknown
	}
	return history.Refused
}

// asAnswered adds what the answer says.
func asAnswered(c history.Call, r reply) history.Call {
	if c.Outcome == history.Absent && c.Kind != history.ReadJob && c.Kind != history.Cancel {
		c.Outcome = history.Refused // by the log
	}
	if c.Outcome != history.Done && c.Outcome != history.Short {
		return c
	}
	var said struct {
		JobID, Status                 string
		ClaimToken                    json.RawMessage
		Used, Available, CreditsShort int
	}
	_ = json.Unmarshal(r.body, &said) // what is missing then breaks the model
	switch c.Kind {
	case history.Submit:
		c.Job, c.Lacking = said.JobID, said.CreditsShort
	case history.Claim:
		c.Token, _ = strconv.Atoi(strings.Trim(string(said.ClaimToken), `"`)) // 0 breaks the model
	case history.ReadJob:
		c.Status = said.Status
	case history.ReadCredits:
		c.Used, c.Available = said.Used, said.Available
	}
	return c
}

// lateRequest finds the requests that a service answered before the read models had caught up.
var lateRequest = regexp.MustCompile(`answered before the read models caught up.*requestId=(load-[\w-]+)`)

// late are the requests that the services answered so.
func late(services ...*instance) map[string]bool {
	all := map[string]bool{}
	for _, s := range services {
		for _, m := range lateRequest.FindAllStringSubmatch(s.Said(), -1) {
			all[m[1]] = true
		}
	}
	return all
}
