package console_test

import (
	"context"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/console"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/dashboard/settings"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/clientlogin"
	"humanqa/internal/invariantcheck"
	"humanqa/internal/mail"
	"humanqa/internal/preferences"
	"humanqa/internal/testing/pagetest"
	"humanqa/webhooks"
)

func TestMain(m *testing.M) { os.Exit(pagetest.Main(m)) }

type guest = pagetest.Guest

// world is the running service with the console, and the dashboard beside it: what
// operators do, clients see.
type world struct {
	*pagetest.Service
	// check is what the next check of the invariants does.
	check chan invariantcheck.Run
}

func setup(t *testing.T) world {
	t.Helper()
	return setupWith(t, func(*pagetest.Service) ([]fs.FS, []ui.Page) { return nil, nil })
}

// setupWith has more pages, of other packages.
func setupWith(t *testing.T, more pagetest.Pages) world {
	t.Helper()
	w := world{check: make(chan invariantcheck.Run, 8)}
	log := logrus.New()
	log.SetOutput(io.Discard)
	w.Service = pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		checks := invariantcheck.New(s.DB, func(ctx context.Context, tell invariantcheck.Progress) (invariantcheck.Result, error) {
			select {
			case run := <-w.check:
				return run(ctx, tell)
			case <-ctx.Done():
				return invariantcheck.Result{}, ctx.Err()
			}
		}, log)
		s.Owner.Cleanup(checks.Stop)
		deliveries := webhooks.NewLog(s.DB)
		templates, pages := more(s)
		return append(append(templates, dashboard.Templates...), settings.Templates, console.Templates), slices.Concat(pages,
			dashboard.Pages(dashboard.Deps{
				Commands: s.Commands, Reads: s.Reads, Limits: s.API.Limits, Fresh: s.API.Fresh, PastReads: s.API.PastReads, Evidence: s.Evidence, Readers: s.API.Readers, Credentials: s.Credentials, Preferences: preferences.New(s.DB, time.Now),
				Deliveries: deliveries, Now: time.Now, BaseURL: s.BaseURL,
			}),
			settings.Pages(settings.Deps{
				Commands: s.Commands, Reads: s.Reads, Credentials: s.Credentials, Evidence: s.Evidence, Readers: s.API.Readers, Now: time.Now, Logins: clientlogin.NewStore(s.DB, time.Now),
				Mail: mail.NewStore(s.DB, time.Now, mail.Links{BaseURL: s.Origin, Keys: s.Vault.MACKeys}),
			}),
			console.Pages(console.Deps{
				Commands: s.Commands, Reads: s.Reads, Credentials: s.Credentials, Deliveries: deliveries, Log: s.Log, Checks: checks,
				Status: s.Consumers.Status, DB: s.DB, Now: time.Now, StillAllowed: s.API.Limits.StillAllowed, Link: s.Evidence.Link,
				Problems: func(ctx context.Context) (problems []wire.ReadyProblem) {
					all, err := s.Consumers.Status(ctx)
					if err != nil && ctx.Err() == nil { // else the browser has left the page
						s.Owner.Errorf("the read models: %v", err)
					}
					for _, one := range all {
						if p := one.Problem(); p != "" {
							problems = append(problems, wire.ReadyProblem{Part: "projections", Reason: p})
						}
					}
					found, err := checks.Problem(ctx)
					if err != nil && ctx.Err() == nil {
						s.Owner.Errorf("the last check: %v", err)
					}
					if found != "" {
						problems = append(problems, wire.ReadyProblem{Note: true, Part: "invariants", Reason: found})
					}
					return problems
				},
				Facts:    []console.Fact{{Name: "humanqa", Value: "v1.2.3"}},
				Settings: []console.Setting{{Name: "HUMANQA_ADDR", Value: "127.0.0.1:8080", About: "where it listens"}},
			}))
	})
	return w
}

// finds is a check that finds so much.
func finds(findings ...audit.Finding) invariantcheck.Run {
	return func(_ context.Context, tell invariantcheck.Progress) (invariantcheck.Result, error) {
		tell("reading the log", 12)
		return invariantcheck.Result{Events: 12, Jobs: 3, Findings: findings}, nil
	}
}

func (w world) operates(name string) guest {
	w.T.Helper()
	return w.Joined(name, person.Grant{Role: person.Operator})
}

// form is what a browser sends: a command of its own, and the pairs.
func form(pairs ...string) url.Values {
	f := url.Values{"command": {uuid.NewString()}}
	for i := 0; i+1 < len(pairs); i += 2 {
		f.Set(pairs[i], pairs[i+1])
	}
	return f
}

// hostile is what others wrote.
const hostile = `<script>alert("x")</script>`

// test submits a job whose texts are secrets of its client.
func (w world) test(accountID, title string) string {
	w.T.Helper()
	out, err := w.Commands.SubmitJob(w.T.Context(), pagetest.Client(accountID), command.SubmitJob{
		Submission:  job.Submission{URL: "https://shop.example.com/top-secret", Title: title, Type: job.GeneralQA, Source: "api", Description: "top-secret words"},
		Items:       []command.NewItem{{Description: "top-secret item " + hostile, Severity: job.Major}},
		Credentials: &command.Credentials{Username: "qa", Password: "correct-horse-battery"},
	})
	w.Shown(out.Position, err)
	return out.JobID
}

func (w world) in(t *testing.T) world {
	w.Service = w.In(t)
	return w
}

// has fails the test unless the page shows all of the texts.
func (w world) has(g guest, path string, texts ...string) string {
	w.T.Helper()
	got := w.Call(g, "GET", path, nil)
	if got.Status != 200 {
		w.T.Errorf("%s: %d", path, got.Status)
	}
	for _, text := range texts {
		if !strings.Contains(got.Body, text) {
			w.T.Errorf("%s does not show %q", path, text)
		}
	}
	return got.Body
}
