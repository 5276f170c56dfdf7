package dashboard_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/policy"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/httpapi/dashboard"
	"humanqa/httpapi/signin"
	"humanqa/httpapi/ui"
	"humanqa/internal/ai"
	"humanqa/internal/blob"
	"humanqa/internal/browsertest"
	"humanqa/internal/credential"
	"humanqa/internal/pgtest"
	"humanqa/internal/scheduler"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/projections/events"
	"humanqa/projections/timers"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(func() int { return pgtest.Main(m) })) }

const (
	cookieName = "__Host-humanqa"
	password   = "correct horse battery"
	patience   = time.Minute
)

// world is the pages over the whole service: a real log, real read models,
// policies, and a server on this machine.
type world struct {
	t           *testing.T
	db          *sqlx.DB
	commands    *command.Service
	reads       *projections.Reads
	credentials *credential.Store
	api         *httpapi.API
	site        *ui.Site
	waitFor     func(context.Context, domain.Position) error
	origin      string
	boxes       map[string]bool // accounts that are sandboxes
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func setup(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.New(t), boxes: map[string]bool{}}
	log := logrus.New()
	log.SetOutput(io.Discard)
	dir, err := os.MkdirTemp("", "ui") //nolint:usetesting // a socket's path must be short, t.TempDir holds the test's name
	w.must(err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "node")
	n, err := node.Start(t.Context(), node.Config{DSN: pgtest.DSN(t, w.db), Socket: socket, Log: log})
	w.must(err)
	t.Cleanup(func() { w.must(n.Close(context.Background())) })
	client, err := eventstore.OpenSocket(socket, log)
	w.must(err)
	t.Cleanup(func() { w.must(client.Close()) })

	feed := eventstore.NewFeed(client, log)
	v, err := vault.Open(t.Context(), vault.Config{KeyFile: filepath.Join(dir, "key"), DB: w.db})
	w.must(err)
	files, err := blob.Open(t.Context(), blob.Directory(filepath.Join(dir, "evidence")))
	w.must(err)
	w.reads = projections.NewReads(w.db)
	w.commands = command.New(command.Deps{
		Log: client, Sealer: v, AI: ai.New(ai.Config{Log: log}), Reads: projections.CommandReads{Reads: w.reads},
		Now: time.Now, ClaimsPerChecker: 1,
	})
	supervisor := consumer.New(w.db, feed, log, projections.All()...)
	w.must(supervisor.Prepare(t.Context()))
	w.waitFor = supervisor.WaitFor
	news := changes.New(feed, w.db, supervisor.WaitFor, log)

	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	w.must(err)
	base := "http://" + ln.Addr().String()
	w.origin = ui.Origin(base)
	w.credentials, err = credential.Open(credential.Config{DB: w.db, Now: time.Now, BaseURL: base})
	w.must(err)
	w.api = httpapi.New(httpapi.Deps{
		Commands: w.commands,
		Reads:    w.reads,
		WaitFor:  supervisor.WaitFor, FeedShown: func(ctx context.Context) error { return supervisor.CatchUp(ctx, events.Name) },
		Ready: func(context.Context) []httpapi.Problem { return nil },
		DB:    w.db, Vault: v, Evidence: files, Log: log, Now: time.Now, BaseURL: base,
	})
	w.site, err = ui.New(ui.Config{
		Credentials: w.credentials, People: w.reads.People, Changes: news,
		Admit: w.api.Admit, Address: httpapi.Address, WaitFor: supervisor.WaitFor, Log: log, Now: time.Now, BaseURL: base,
		Templates: []fs.FS{signin.Templates, dashboard.Templates},
		Pages: slices.Concat(
			signin.Pages(signin.Deps{Credentials: w.credentials, People: w.reads.People, Join: w.commands.JoinPerson, BaseURL: base}),
			dashboard.Pages(dashboard.Deps{Commands: w.commands, Reads: w.reads, API: w.api, Credentials: w.credentials, Now: time.Now, BaseURL: base}),
		),
	})
	w.must(err)

	w.background(feed.Run)
	w.background(supervisor.Run)
	w.background(func(ctx context.Context) error { return news.Run(ctx, domain.Position{}) })
	w.background(func(ctx context.Context) error {
		scheduler.New(timers.New(w.db, pgtest.DSN(t, w.db)), log, policy.All(w.commands)...).Run(ctx)
		return nil
	})
	w.background(func(ctx context.Context) error {
		return httpapi.Serve(ctx, httpapi.NewServer(ui.Front{Site: w.site, API: w.api, Settle: httpapi.Reach{}.Settle}, log), ln, 5*time.Second)
	})
	t.Cleanup(w.commands.Drain)
	return w
}

// background runs a part of the service until the test ends.
func (w *world) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			w.t.Errorf("a part of the service: %v", err)
		}
	})
}

func operator() command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "operator"}
}

func (w *world) shown(at domain.Position, err error) {
	w.t.Helper()
	w.must(err)
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	w.must(w.waitFor(ctx, at))
}

func (w *world) account(name string, amount domain.Credits) string {
	w.t.Helper()
	return w.newAccount(name, amount, false)
}

func (w *world) newAccount(name string, amount domain.Credits, sandbox bool) string {
	w.t.Helper()
	id, at, err := w.commands.CreateAccount(w.t.Context(), operator(), name, sandbox)
	w.boxes[id] = sandbox
	w.shown(at, err)
	if amount > 0 {
		_, at, err = w.commands.GrantCredits(w.t.Context(), operator(), id, amount, nil, "Welcome")
		w.shown(at, err)
	}
	return id
}

// guest is somebody with a session.
type guest struct {
	id, token string
}

// invited gives the id of somebody who has not joined, and their link's path.
func (w *world) invited(name string, g person.Grant) (id, path string) {
	w.t.Helper()
	id, at, err := w.commands.InvitePerson(w.t.Context(), operator(), g)
	w.shown(at, err)
	token, err := w.credentials.Invite(w.t.Context(), id, name, credential.LinkFor)
	w.must(err)
	return id, "/join/" + token
}

// joined is somebody who has: without a password, whose hashing would take time.
func (w *world) joined(name string, g person.Grant) guest {
	w.t.Helper()
	id, _ := w.invited(name, g)
	w.shown(w.commands.JoinPerson(w.t.Context(), operator(), id))
	_, err := w.db.ExecContext(w.t.Context(), `INSERT INTO signin.people (person_id, name) VALUES ($1, $2)`, id, name)
	w.must(err)
	token, err := w.credentials.Begin(w.t.Context(), id, "127.0.0.1", "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0")
	w.must(err)
	return guest{id, token}
}

func (w *world) checker() string {
	w.t.Helper()
	c, err := w.commands.CreateChecker(w.t.Context(), operator(), "ann", nil)
	w.shown(c.Position, err)
	return c.CheckerID
}

func cause(accountID string) command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "key:test", AccountID: accountID}
}

// cause is a client's, in a sandbox too.
func (w *world) cause(accountID string) command.Cause {
	c := cause(accountID)
	c.Sandbox = w.boxes[accountID]
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

// call sends a request as a guest's browser; the zero guest is a visitor. form
// makes it a POST of this site.
func (w *world) call(g guest, method, path string, form url.Values, headers ...string) response {
	w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.origin+path, body)
	w.must(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if g.token != "" {
		r.Header.Set("Cookie", cookieName+"="+g.token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(r)
	w.must(err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	w.must(err)
	return response{got.StatusCode, got.Header, string(text)}
}

// tab opens a browser that is signed in as the guest.
func (w *world) tab(g guest) *browsertest.Tab {
	w.t.Helper()
	tab := browsertest.New(w.t)
	if g.token != "" {
		tab.Cookie(w.origin, cookieName, g.token)
	}
	return tab
}
