package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/internal/backoff"
	"humanqa/projections/events"
)

const (
	// refusalsEvery is how often the refusals of an account become an event.
	refusalsEvery = time.Minute
	// lastRefusals bounds the writing of the last ones: a stop waits for it.
	lastRefusals = 5 * time.Second
)

// Refusals sums the tests that this process refuses, by account (decisions, "Refusals"). So
// a flood of them costs one event a minute. A crash loses a minute of them, and so does a
// log that does not answer: an event that may be written is not written again.
type Refusals struct {
	commands *command.Service
	now      func() time.Time
	log      logrus.FieldLogger

	mu       sync.Mutex
	accounts map[string]*account.SubmissionsRefused // the next event of each
}

// reasons are the codes with which tests are refused.
var reasons = map[int]domain.Code{
	http.StatusPaymentRequired: domain.CodeInsufficientCredits,
	http.StatusTooManyRequests: domain.CodeRateLimited,
	http.StatusForbidden:       domain.CodeAccountSuspended,
}

// note counts the tests that a request asked for, if the answer refuses them. A repeat
// counts, too, also under the same Idempotency-Key.
func (c *Refusals) note(r *wire.Request, ans wire.Answer) {
	reason := reasons[ans.Status]
	if reason == "" || !bytes.Contains(ans.Body, []byte(reason)) || r.Caller.AccountID == "" || r.Route == nil || r.Route.Buys == "" ||
		r.URL.Query().Get("dryRun") == "true" {
		return
	}
	asked := r.Asked
	if len(asked) == 0 { // it was refused before its body was read
		asked = []job.Submission{{}}
	}
	_, keyID := command.Cause{Actor: r.Caller.Actor}.RequestedBy()
	now := c.now().UTC()
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.accounts[r.Caller.AccountID]
	if of == nil {
		of = &account.SubmissionsRefused{From: now}
		c.accounts[r.Caller.AccountID] = of
	}
	of.To = now
	for _, test := range asked {
		projectID := cmp.Or(test.ProjectID, r.Caller.ProjectID)
		count := account.RefusedCount{Reason: reason, Source: r.Route.Buys, ProjectID: projectID, KeyID: keyID}
		at := slices.IndexFunc(of.Counts, func(c account.RefusedCount) bool { c.Tests = 0; return c == count })
		if at < 0 {
			at, of.Counts = len(of.Counts), append(of.Counts, count)
		}
		of.Counts[at].Tests++
		url, secret, _ := strings.Cut(test.URL, "#") // a fragment may be a secret
		sample := account.RefusedTest{
			Source: r.Route.Buys, ProjectID: projectID, URL: url, Title: test.Title,
			Commit: test.Commit, Branch: test.Branch, Environment: test.Environment, Urgent: test.Urgent,
			// A hook's query has a secret for the app.
			Whole: r.Audience == wire.Hooks && secret == "" && test.Feature == "" && r.URL.RawQuery == "",
		}
		if url != "" && len(of.Samples) < account.MaxSamples && !slices.Contains(of.Samples, sample) {
			of.Samples = append(of.Samples, sample)
		}
	}
}

// Run records the refusals of each minute, and the last ones when ctx ends.
func (c *Refusals) Run(ctx context.Context) {
	for backoff.Wait(ctx, refusalsEvery) == nil {
		c.Record(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastRefusals)
	defer cancel()
	c.Record(last)
}

// Record writes an event for each account with refusals. The rest waits when ctx ends.
func (c *Refusals) Record(ctx context.Context) {
	c.mu.Lock()
	waiting := slices.Collect(maps.Keys(c.accounts))
	c.mu.Unlock()
	for _, id := range waiting {
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		e := c.accounts[id]
		delete(c.accounts, id)
		c.mu.Unlock()
		if e == nil {
			continue
		}
		slices.SortFunc(e.Counts, func(a, b account.RefusedCount) int { return b.Tests - a.Tests })
		cause := command.Cause{CommandID: domain.NewCommandID(), Actor: "policy:refusals"}
		if err := c.commands.RecordRefusals(ctx, cause, id, *e); err != nil {
			c.log.WithError(err).WithField("accountId", id).Warn("refused tests may not be recorded")
		}
	}
}

type refusalPage struct {
	Refusals   []announce.Refused `json:"refusals"`
	NextCursor *string            `json:"nextCursor"` // null at the end
}

// listRefusals is GET /v1/refusals: the account's refused tests, the newest first.
func (a *API) listRefusals(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	limit, before := q.Integer("limit", 20, 1, 100), q.Text("cursor")
	if !events.IsCursor(before) {
		p.Add("cursor", "must be a nextCursor of this list")
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	if err := a.Fresh.RequireFeed(r.Context()); err != nil { // a webhook may have told of them
		return wire.Answer{}, err
	}
	found, err := a.Reads.Events.Refusals(r.Context(), r.Caller.AccountID, before, limit+1)
	var page refusalPage
	if len(found) > limit {
		found = found[:limit]
		page.NextCursor = &found[limit-1].Cursor
	}
	page.Refusals = wire.List(found, func(e events.AccountEvent) announce.Refused {
		return announce.RefusedOf(e.Recorded.Event.(*account.SubmissionsRefused))
	})
	return wire.ReplyUnless(err, http.StatusOK, page)
}
