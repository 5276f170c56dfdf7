package dashboard_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/dashboard/settings"
	"humanqa/httpapi/input"
	"humanqa/httpapi/room"
	"humanqa/httpapi/ui"
	"humanqa/internal/chat"
	"humanqa/internal/clientlogin"
	"humanqa/internal/mail"
	"humanqa/internal/preferences"
	"humanqa/internal/testing/chattest"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/pools"
	"humanqa/webhooks"
)

func TestMain(m *testing.M) { os.Exit(pagetest.Main(m)) }

const password = "correct horse battery"

// world is the running service with the dashboard's pages.
type world struct {
	*pagetest.Service
	preferences *preferences.Store
	boxes       *sync.Map // accounts that are sandboxes
}

// demoKeys are the keys of demos, by their service's URL.
var demoKeys sync.Map

// chats are the stubs of chats, by their service's URL; all other services reach none.
var chats sync.Map

type stubbed string

func (s stubbed) RoundTrip(r *http.Request) (*http.Response, error) {
	stub, ok := chats.Load(string(s))
	if !ok {
		return nil, errors.New("the test has no chat")
	}
	server, _ := stub.(*chattest.Server)
	return server.Poster.Client.Transport.RoundTrip(r)
}

// shared has the page of a session, too, which is another package's.
var shared = pagetest.Shared{Pages: func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
	templates, table := pages(s, s.API.Limits)
	return append(templates, room.Templates), append(table,
		room.Pages(room.Deps{Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Changes: s.Changes, Now: time.Now})...)
}}

// setup is for tests that look at nothing but accounts and people of their own.
func setup(t *testing.T) *world {
	t.Helper()
	return on(shared.In(t))
}

// own is for tests that look at the log, at all rows or at which checkers are online, and
// for those that send what the service writes: they would send it for every account.
func own(t *testing.T) *world {
	t.Helper()
	return on(pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) { return pages(s, s.API.Limits) }))
}

// ownResolving looks the hosts of tests up.
func ownResolving(t *testing.T, resolve func(ctx context.Context, host string) error) *world {
	t.Helper()
	return on(pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		return pages(s, input.NewLimits(input.Settings{Resolve: resolve}, pools.NewReads(s.DB)))
	}))
}

func on(s *pagetest.Service) *world {
	return &world{Service: s, preferences: preferences.New(s.DB, time.Now), boxes: new(sync.Map)}
}

func pages(s *pagetest.Service, limits *input.Limits) ([]fs.FS, []ui.Page) {
	return slices.Concat(dashboard.Templates, []fs.FS{settings.Templates}), slices.Concat(
		dashboard.Pages(dashboard.Deps{
			Commands: s.Commands, Reads: s.Reads, Evidence: s.Evidence, Readers: s.API.Readers, Limits: limits, Fresh: s.API.Fresh, PastReads: s.API.PastReads, Credentials: s.Credentials,
			Preferences: preferences.New(s.DB, time.Now), Deliveries: webhooks.NewLog(s.DB), Chats: &chat.Poster{Client: &http.Client{Transport: stubbed(s.BaseURL)}}, Now: time.Now, BaseURL: s.BaseURL, CreditsURL: "https://pay.example.com/credits",
		}),
		settings.Pages(settings.Deps{
			Commands: s.Commands, Reads: s.Reads, Credentials: s.Credentials, Logins: clientlogin.NewStore(s.DB, time.Now), Mail: mail.NewStore(s.DB, time.Now, links(s)), Evidence: s.Evidence, Readers: s.API.Readers, Now: time.Now,
			DemoKey: func() string { key, _ := demoKeys.Load(s.BaseURL); token, _ := key.(string); return token },
		}))
}

// links are those of letters.
func links(s *pagetest.Service) mail.Links {
	return mail.Links{BaseURL: s.Origin, Keys: s.Vault.MACKeys}
}

func (w *world) links() mail.Links { return links(w.Service) }

func (w *world) account(name string, amount domain.Credits) string {
	w.T.Helper()
	return w.newAccount(name, amount, false)
}

func (w *world) newAccount(name string, amount domain.Credits, sandbox bool) string {
	w.T.Helper()
	id := w.Account(name, amount, sandbox)
	w.boxes.Store(id, sandbox)
	return id
}

// guest is somebody with a session; the zero guest is a visitor.
type guest = pagetest.Guest

// cause is a client's, in a sandbox too.
func (w *world) cause(accountID string) command.Cause {
	c := pagetest.Client(accountID)
	sandbox, _ := w.boxes.Load(accountID)
	c.Sandbox, _ = sandbox.(bool)
	return c
}

// test submits a job with a list of three.
func (w *world) test(accountID, title string, change func(*command.SubmitJob)) string {
	w.T.Helper()
	in := command.SubmitJob{
		Submission: job.Submission{
			URL: "https://shop.example.com/checkout", Title: title, Type: job.PaymentFlow, TypeEcho: "Payment Flow", Source: "api",
			Description: "Buy the cheapest plan with a test card.",
		},
		Items: []command.NewItem{
			{Description: "The price on the page is the price that is charged", ExpectedOutcome: "Both show 9.00 EUR", Severity: job.Critical},
			{Description: "A card that is declined leads back to the form", Severity: job.Major},
			{Description: "The receipt arrives by e-mail", Severity: job.Minor},
		},
	}
	if change != nil {
		change(&in)
	}
	out, err := w.Commands.SubmitJob(w.T.Context(), w.cause(accountID), in)
	w.Shown(out.Position, err)
	return out.JobID
}

// batch is tests that were submitted together.
func (w *world) batch(accountID string, titles ...string) (id string, jobIDs []string) {
	w.T.Helper()
	var in []command.SubmitJob
	for _, title := range titles {
		in = append(in, command.SubmitJob{
			Submission: job.Submission{URL: "https://shop.example.com", Title: title, Type: job.GeneralQA, Source: "bulk"},
			Items:      []command.NewItem{{Description: "It opens", Severity: job.Major}},
		})
	}
	out, err := w.Commands.SubmitBulk(w.T.Context(), pagetest.Client(accountID), in)
	w.Shown(out.Position, err)
	return out.BatchID, out.JobIDs
}

// looped is a test that an agent asked for, and the session of its loop.
func (w *world) looped(accountID, host, skill string, iteration int) (loopID string, test command.HostedJob) {
	w.T.Helper()
	test, err := w.Commands.TestHosted(w.T.Context(), pagetest.Client(accountID), command.HostedTest{
		Submission: job.Submission{URL: "https://" + host, Feature: "Pay", Source: "loop"}, Host: host,
		Loop: &command.LoopStep{Skill: skill, Iteration: iteration},
	})
	w.Shown(test.Position, err)
	runs, err := w.Reads.Loops.OfProject(w.T.Context(), accountID, test.ProjectID, 1)
	w.Must(err)
	if len(runs) != 1 {
		w.T.Fatal("the test is part of no loop")
	}
	return runs[0].ID, test
}

// claim is a checker at work.
type claim struct {
	w *world
	command.Claim
	command.ClaimedJob
}

func (w *world) claims(checkerID, jobID string) claim {
	w.T.Helper()
	out, err := w.Commands.ClaimJob(w.T.Context(), pagetest.ByChecker(checkerID), checkerID, jobID)
	w.Shown(out.Position, err)
	return claim{w, command.Claim{CheckerID: checkerID, JobID: jobID, Token: out.Token}, out}
}

func (c claim) checks(item int, status job.ItemStatus, note string) {
	c.w.T.Helper()
	in := command.CheckItem{ItemID: c.Checklist[item].ID, Status: status, Note: note}
	if status == job.ItemSkip {
		in.Reason = "blocked"
	}
	_, at, err := c.w.Commands.CheckItem(c.w.T.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, in)
	c.w.Shown(at, err)
}

func (c claim) asks(item int, text string) (questionID string) {
	c.w.T.Helper()
	in := command.AskQuestion{ItemID: c.Checklist[item].ID, Kind: "code", Text: text}
	q, at, err := c.w.Commands.AskQuestion(c.w.T.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, in)
	c.w.Shown(at, err)
	return q.ID
}

func (c claim) completes(summary string) {
	c.w.T.Helper()
	_, at, err := c.w.Commands.CompleteJob(c.w.T.Context(), pagetest.ByChecker(c.CheckerID), c.Claim, command.CompleteJob{Summary: summary})
	c.w.Shown(at, err)
}

// completed is a job that was tested: its three items got these verdicts.
func (w *world) completed(accountID, title, note string, verdicts ...job.ItemStatus) string {
	w.T.Helper()
	id := w.test(accountID, title, nil)
	c := w.claims(w.Checker("ann"), id)
	for i, v := range verdicts {
		said := ""
		if v == job.ItemFail {
			said = note
		}
		c.checks(i, v, said)
	}
	c.completes("I bought the plan with two cards. " + note)
	return id
}
