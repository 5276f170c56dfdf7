package dashboard_test

import (
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/pagetest"
	"humanqa/httpapi/room"
	"humanqa/httpapi/ui"
	"humanqa/internal/browsertest"
	"humanqa/internal/credential"
	"humanqa/internal/desk"
	"humanqa/projections"
	"humanqa/webhooks"
)

func TestMain(m *testing.M) { os.Exit(pagetest.Main(m)) }

const password = "correct horse battery"

// world is the running service with the dashboard's pages.
type world struct {
	*pagetest.Service
	t           *testing.T
	db          *sqlx.DB
	commands    *command.Service
	reads       *projections.Reads
	credentials *credential.Store
	desk        *desk.Store
	site        *ui.Site
	origin      string
	boxes       *sync.Map // accounts that are sandboxes
}

func (w *world) must(err error) {
	w.t.Helper()
	w.In(w.t).Must(err)
}

func setup(t *testing.T) *world {
	t.Helper()
	return with(t, func(*pagetest.Service) ([]fs.FS, []ui.Page) { return nil, nil })
}

// setupWithRoom has the page of a session, too, which is another package's.
func setupWithRoom(t *testing.T) *world {
	t.Helper()
	return with(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		return []fs.FS{room.Templates}, room.Pages(room.Deps{Commands: s.Commands, Reads: s.Reads, API: s.API, Changes: s.Changes, Now: time.Now})
	})
}

func with(t *testing.T, more pagetest.Pages) *world {
	t.Helper()
	s := pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		templates, pages := more(s)
		return append(templates, dashboard.Templates), append(pages, dashboard.Pages(dashboard.Deps{
			Commands: s.Commands, Reads: s.Reads, API: s.API, Credentials: s.Credentials, Desk: desk.New(s.DB, time.Now), Deliveries: webhooks.NewLog(s.DB), Now: time.Now, BaseURL: s.BaseURL,
		})...)
	})
	return &world{
		Service: s, t: t, db: s.DB, commands: s.Commands, reads: s.Reads, credentials: s.Credentials, desk: desk.New(s.DB, time.Now), site: s.Site,
		origin: s.Origin, boxes: new(sync.Map),
	}
}

func operator() command.Cause { return pagetest.Operator() }

func (w *world) shown(at domain.Position, err error) {
	w.t.Helper()
	w.In(w.t).Shown(at, err)
}

func (w *world) account(name string, amount domain.Credits) string {
	w.t.Helper()
	return w.newAccount(name, amount, false)
}

func (w *world) newAccount(name string, amount domain.Credits, sandbox bool) string {
	w.t.Helper()
	id := w.In(w.t).Account(name, amount, sandbox)
	w.boxes.Store(id, sandbox)
	return id
}

// guest is somebody with a session; the zero guest is a visitor.
type guest = pagetest.Guest

func (w *world) invited(name string, g person.Grant) (id, path string) {
	w.t.Helper()
	return w.In(w.t).Invited(name, g)
}

func (w *world) joined(name string, g person.Grant) guest {
	w.t.Helper()
	return w.In(w.t).Joined(name, g)
}

func (w *world) checker() string {
	w.t.Helper()
	return w.In(w.t).Checker("ann")
}

func cause(accountID string) command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "key:test", AccountID: accountID}
}

// cause is a client's, in a sandbox too.
func (w *world) cause(accountID string) command.Cause {
	c := cause(accountID)
	sandbox, _ := w.boxes.Load(accountID)
	c.Sandbox, _ = sandbox.(bool)
	return c
}

// test submits a job with a list of three.
func (w *world) test(accountID, title string, change func(*command.SubmitJob)) string {
	w.t.Helper()
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
	out, err := w.commands.SubmitJob(w.t.Context(), w.cause(accountID), in)
	w.shown(out.Position, err)
	return out.JobID
}

// batch is tests that were submitted together.
func (w *world) batch(accountID string, titles ...string) (id string, jobIDs []string) {
	w.t.Helper()
	var in []command.SubmitJob
	for _, title := range titles {
		in = append(in, command.SubmitJob{
			Submission: job.Submission{URL: "https://shop.example.com", Title: title, Type: job.GeneralQA, Source: "bulk"},
			Items:      []command.NewItem{{Description: "It opens", Severity: job.Major}},
		})
	}
	out, err := w.commands.SubmitBulk(w.t.Context(), cause(accountID), in)
	w.shown(out.Position, err)
	return out.BatchID, out.JobIDs
}

// looped is a test that an agent asked for, and the session of its loop.
func (w *world) looped(accountID, host, skill string, iteration int) (loopID string, test command.HostedJob) {
	w.t.Helper()
	test, err := w.commands.TestHosted(w.t.Context(), cause(accountID), command.HostedTest{
		Submission: job.Submission{URL: "https://" + host, Feature: "Pay", Source: "loop"}, Host: host,
		Loop: &command.LoopStep{Skill: skill, Iteration: iteration},
	})
	w.shown(test.Position, err)
	runs, err := w.reads.Loops.OfProject(w.t.Context(), accountID, test.ProjectID, 1)
	w.must(err)
	if len(runs) != 1 {
		w.t.Fatal("the test is part of no loop")
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
	w.t.Helper()
	out, err := w.commands.ClaimJob(w.t.Context(), command.Cause{CommandID: command.NewCommandID(), Actor: "checker:" + checkerID}, checkerID, jobID)
	w.shown(out.Position, err)
	return claim{w, command.Claim{CheckerID: checkerID, JobID: jobID, Token: out.Token}, out}
}

func (c claim) cause() command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "checker:" + c.CheckerID}
}

func (c claim) checks(item int, status job.ItemStatus, note string) {
	c.w.t.Helper()
	in := command.CheckItem{ItemID: c.Checklist[item].ID, Status: status, Note: note}
	if status == job.ItemSkip {
		in.Reason = "blocked"
	}
	_, at, err := c.w.commands.CheckItem(c.w.t.Context(), c.cause(), c.Claim, in)
	c.w.shown(at, err)
}

func (c claim) completes(summary string) {
	c.w.t.Helper()
	_, at, err := c.w.commands.CompleteJob(c.w.t.Context(), c.cause(), c.Claim, command.CompleteJob{Summary: summary})
	c.w.shown(at, err)
}

// completed is a job that was tested: its three items got these verdicts.
func (w *world) completed(accountID, title, note string, verdicts ...job.ItemStatus) string {
	w.t.Helper()
	id := w.test(accountID, title, nil)
	c := w.claims(w.checker(), id)
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

// response is an answer as a browser would get it.
type response struct {
	status int
	header http.Header
	body   string
}

// call sends a request as a guest's browser. form makes it a POST of this site.
func (w *world) call(g guest, method, path string, form url.Values, headers ...string) response {
	w.t.Helper()
	got := w.In(w.t).Call(g, method, path, form, headers...)
	return response{got.Status, got.Header, got.Body}
}

// tab opens a browser that is signed in as the guest.
func (w *world) tab(g guest) *browsertest.Tab {
	w.t.Helper()
	return w.In(w.t).Tab(g)
}
