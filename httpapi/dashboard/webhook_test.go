package dashboard_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/internal/guard"
	"humanqa/internal/signature"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/pgtest"
	"humanqa/webhooks"
	"humanqa/webhooks/send"
)

// receiver is an endpoint of a client: it answers with its code, and notes the
// deliveries it was sent.
type receiver struct {
	*httptest.Server
	code atomic.Int64

	mu  sync.Mutex
	ids []string
}

func (e *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the test reads the record
	e.mu.Lock()
	e.ids = append(e.ids, r.Header.Get(signature.DeliveryHeader))
	e.mu.Unlock()
	w.WriteHeader(int(e.code.Load()))
	_, _ = w.Write([]byte("<b>my server</b> says " + http.StatusText(int(e.code.Load()))))
}

func (e *receiver) count(id string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.ids {
		if one == id {
			n++
		}
	}
	return n
}

// delivering starts a receiver and a dispatcher with these retries; none: the first
// failure is the last.
func (w *world) delivering(code int, retries ...time.Duration) *receiver {
	w.T.Helper()
	e := &receiver{}
	e.code.Store(int64(code))
	e.Server = httptest.NewTLSServer(e)
	w.T.Cleanup(e.Close)
	ca := filepath.Join(w.T.TempDir(), "ca.pem")
	w.Must(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.Certificate().Raw}), 0o600))
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	d := send.NewDispatcher(w.DB, w.Vault, send.Report{Disabled: func(ctx context.Context, projectID, deliveryID, reason string) error {
		_, err := w.Commands.DisableWebhook(ctx, pagetest.Operator(), projectID, deliveryID, reason)
		return err
	}}, send.Config{
		DSN: pgtest.DSN(w.T, w.DB), Log: quiet, CAFile: ca, Retries: append([]time.Duration{}, retries...), Allow: guard.Allow{netip.MustParsePrefix("127.0.0.0/8")},
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	w.T.Cleanup(func() {
		cancel()
		w.Must(<-ended)
	})
	return e
}

// hooked is a project of the account whose webhook goes to the URL.
func (w *world) hooked(accountID, name, to string) string {
	w.T.Helper()
	p, err := w.Commands.CreateProject(w.T.Context(), pagetest.Client(accountID), command.CreateProject{Name: name, WebhookURL: to})
	w.Shown(p.Position, err)
	return p.ProjectID
}

func (w *world) testIn(accountID, projectID string) string {
	w.T.Helper()
	return w.test(accountID, "Checkout", func(in *command.SubmitJob) { in.ProjectID = projectID })
}

func (w *world) record() *webhooks.Log { return webhooks.NewLog(w.DB) }

// tested is the delivery of a test event.
func (w *world) tested(accountID, projectID string) string {
	w.T.Helper()
	id := uuid.New()
	w.API.Fresh.Webhooks(w.T.Context())
	w.Must(w.record().Test(w.T.Context(), accountID, projectID, id, time.Now()))
	return id.String()
}

func (w *world) deliveries(accountID, projectID, status string) []webhooks.Delivery {
	w.T.Helper()
	list, _, err := w.record().Deliveries(w.T.Context(), accountID, projectID, webhooks.DeliveryFilter{State: status, Limit: 100})
	w.Must(err)
	return list
}

func (w *world) within(what string, met func() bool) {
	w.T.Helper()
	eventually.True(w.T, what, met)
}

// webhookStates makes a webhook in each of its states, and gives their pages.
func (w *world) webhookStates(accountID string) func(as guest) []pagetest.Seen {
	w.T.Helper()
	down := w.delivering(http.StatusBadGateway, time.Hour)
	failing := w.hooked(accountID, "Failing", down.URL+"/in?token=of-ours")
	w.testIn(accountID, failing)
	disabled := w.hooked(accountID, "Disabled", "https://hooks.example.com/in")
	at, err := w.Commands.DisableWebhook(w.T.Context(), pagetest.Operator(), disabled, uuid.NewString(), "answered 502; then no answer within 10s")
	w.Shown(at, err)
	for range 3 {
		w.testIn(accountID, disabled)
	}
	rotating := w.hooked(accountID, "Rotating", "https://hooks.example.com/other")
	rotated, err := w.Commands.RotateSecret(w.T.Context(), pagetest.Client(accountID), rotating, false)
	w.Shown(rotated.Position, err)
	token := "Bearer of a shot"
	_, at, err = w.Commands.UpdateProject(w.T.Context(), pagetest.Client(accountID), rotating, command.UpdateProject{
		Headers: &command.Headers{Values: map[string]*string{"Authorization": &token, "X-Environment": &token}},
	})
	w.Shown(at, err)
	none, err := w.Commands.CreateProject(w.T.Context(), pagetest.Client(accountID), command.CreateProject{Name: "Without"})
	w.Shown(none.Position, err)
	w.within("an attempt has failed", func() bool {
		list := w.deliveries(accountID, failing, webhooks.StatePending)
		return len(list) == 1 && list[0].Attempts == 1 && !list[0].Sending
	})
	w.within("three are held", func() bool { return len(w.deliveries(accountID, disabled, webhooks.StateHeld)) == 3 })
	return func(as guest) []pagetest.Seen {
		page := func(id string) string { return "/dashboard/projects/" + id + "/webhook" }
		return []pagetest.Seen{
			{Name: "webhook-failing", Path: page(failing), As: as}, {Name: "webhook-disabled", Path: page(disabled), As: as},
			{Name: "webhook-rotating", Path: page(rotating), As: as}, {Name: "webhook-settings", Path: page(rotating) + "?tab=settings", As: as}, {Name: "webhook-none", Path: page(none.ProjectID), As: as},
			{Name: "delivery-retried", Path: "/dashboard/deliveries/" + w.deliveries(accountID, failing, "")[0].ID.String(), As: as},
			{Name: "delivery-held", Path: "/dashboard/deliveries/" + w.deliveries(accountID, disabled, "")[0].ID.String(), As: as},
		}
	}
}

var commandOf = regexp.MustCompile(`name="command" value="([0-9a-f-]{36})"`)

// What was held is seen, chosen, replayed and dropped, without a script; each
// arrives once.
func TestHeldEventsAreChosenReplayedAndDropped(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.account("Acme", 500)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	viewer := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: account})
	e := w.delivering(http.StatusInternalServerError)
	project := w.hooked(account, "Shop", e.URL+"/in")
	page := "/dashboard/projects/" + project + "/webhook"
	for range 4 {
		w.testIn(account, project)
	}
	w.within("the webhook is disabled, and four wait", func() bool {
		all, err := w.record().Health(t.Context(), account, project)
		w.Must(err)
		return all[project].Status() == webhooks.HealthDisabled && all[project].Held+all[project].Failed == 4
	})
	w.within("the log knows", func() bool {
		p, err := w.Reads.Projects.Get(t.Context(), account, project)
		w.Must(err)
		return p.WebhookDisabled
	})
	seen := w.Call(viewer, "GET", page, nil)
	if !strings.Contains(seen.Body, "The webhook is disabled.") || !strings.Contains(seen.Body, "4 events did not reach") || strings.Contains(seen.Body, "<form method=\"post\" action=\""+page+"/enable") || strings.Contains(seen.Body, "Drop") && strings.Contains(seen.Body, "Drop all") {
		t.Errorf("a viewer sees: %d", seen.Status)
	}
	if overview := w.Call(viewer, "GET", "/dashboard", nil); !strings.Contains(overview.Body, "The webhook of Shop is disabled") {
		t.Error("the overview does not tell of it")
	}
	if got := w.Call(dev, "POST", page+"/replay", url.Values{"which": {"all"}}); got.Status != 409 {
		t.Errorf("a replay to a disabled webhook: %d", got.Status)
	}
	waiting := append(w.deliveries(account, project, webhooks.StateHeld), w.deliveries(account, project, webhooks.StateFailed)...)
	dropped, chosen := waiting[0].ID.String(), waiting[1].ID.String()
	lead := func(got pagetest.Response, to string) {
		t.Helper()
		if got.Status != 303 || !strings.HasSuffix(got.Header.Get("Location"), to) {
			t.Errorf("led to %d %s, want %s", got.Status, got.Header.Get("Location"), to)
		}
	}
	lead(w.Call(dev, "POST", page+"/drop", url.Values{"which": {"chosen"}, "delivery": {dropped, "nonsense"}}), "done=dropped&count=1")
	e.code.Store(http.StatusNoContent)
	lead(w.Call(dev, "POST", page+"/enable", url.Values{}), "done=enabled")
	lead(w.Call(dev, "POST", page+"/replay", url.Values{"which": {"chosen"}}), "done=replayed&count=0")
	lead(w.Call(dev, "POST", page+"/replay", url.Values{"which": {"chosen"}, "delivery": {chosen}}), "done=replayed&count=1")
	lead(w.Call(dev, "POST", page+"/replay", url.Values{"which": {"all"}}), "done=replayed&count=2")
	w.within("three were delivered", func() bool { return len(w.deliveries(account, project, webhooks.StateDelivered)) == 3 })
	if got := w.Call(dev, "GET", page+"?done=replayed&count=2", nil); !strings.Contains(got.Body, "2 events will be sent.") || !strings.Contains(got.Body, "Works") {
		t.Error("the page does not say what was done")
	}
	lead(w.Call(dev, "POST", page+"/test", url.Values{}), "")
	w.within("the test event has arrived", func() bool { return len(w.deliveries(account, project, webhooks.StateDelivered)) == 4 })

	// Choosing all while every event is sent changes nothing; choosing some does.
	lead(w.Call(dev, "POST", page, url.Values{"every": {"1"}, "event": {"job.created"}}), "#events")
	if p, err := w.Reads.Projects.Get(t.Context(), account, project); err != nil || p.Events != nil {
		t.Errorf("every event: %v, %v", p.Events, err)
	}
	lead(w.Call(dev, "POST", page, url.Values{"event": {"job.created", "job.claimed"}}), "#events")
	if p, err := w.Reads.Projects.Get(t.Context(), account, project); err != nil || p.Events == nil || fmt.Sprint(*p.Events) != "[job.created]" {
		t.Errorf("one event: %v, %v", p.Events, err)
	}
}

// The deliveries of a test stand together under its title, however many tests ran at once. The
// test with the newest event comes first, and 25 rows make a page.
func TestDeliveriesStandUnderTheirTest(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 500)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	project := w.hooked(account, "Shop", "https://hooks.example.com/in")
	w.Shown(w.Commands.DisableWebhook(t.Context(), pagetest.Operator(), project, "", "answered 502"))
	tests := make([]string, 14)
	for i := range tests {
		tests[i] = w.testIn(account, project)
	}
	for _, id := range tests {
		out, err := w.Commands.CancelJob(t.Context(), pagetest.Client(account), id, "client")
		w.Shown(out.Position, err)
	}
	w.within("all are held", func() bool { return len(w.deliveries(account, project, webhooks.StateHeld)) == 2*len(tests) })
	slices.Reverse(tests)
	row := regexp.MustCompile(`<th scope="rowgroup"[^>]*><span class="clip"><a class="title" href="/dashboard/jobs/([0-9a-f-]+)">Checkout</a>|<tr id="delivery-[^"]*">.*?>(job\.[a-z]+)</a>`)
	rows := func(query string) (list []string) {
		for _, found := range row.FindAllStringSubmatch(w.Call(dev, "GET", "/dashboard/projects/"+project+"/webhook"+query, nil).Body, -1) {
			list = append(list, found[1]+found[2])
		}
		return list
	}
	var first, rest []string
	for i, id := range tests {
		if first = append(first, id, "job.cancelled"); i < 11 {
			first = append(first, "job.created")
			continue
		}
		rest = append(rest, id, "job.created") // beyond the 25 rows of a page
	}
	if got := rows(""); !slices.Equal(got, first) {
		t.Errorf("the first page has\n%q, want\n%q", got, first)
	}
	older := regexp.MustCompile(`href="[^"?]*([^"]*)#deliveries" rel="next">Older</a>`).FindStringSubmatch(w.Call(dev, "GET", "/dashboard/projects/"+project+"/webhook", nil).Body)
	if older == nil {
		t.Fatal("no link leads to older ones")
	}
	if got := rows(html.UnescapeString(older[1])); !slices.Equal(got, rest) {
		t.Errorf("the second page has %q, want %q", got, rest)
	}
	if got := rows("?job=" + tests[4]); !slices.Equal(got, []string{tests[4], "job.cancelled", "job.created"}) {
		t.Errorf("of one test there are %q", got)
	}
}

// An owner sets own headers of the deliveries, and removes them. No page ever shows a value.
func TestOwnHeadersAreSetByAnOwnerAndNeverShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: account})
	dev := w.Joined("Bob", person.Grant{Role: person.Developer, AccountID: account})
	page := "/dashboard/projects/" + w.hooked(account, "Shop", "https://hooks.example.com/in") + "/webhook"
	const canary = "Bearer canary-41aa"
	sent := url.Values{"header": {" authorization"}, "value": {canary}}
	if got := w.Call(dev, "POST", page+"/headers", sent); got.Status != 403 {
		t.Errorf("a developer sets one: %d", got.Status)
	}
	if got := w.Call(owner, "POST", page+"/headers", sent); got.Status != 303 || !strings.HasSuffix(got.Header.Get("Location"), "#headers") {
		t.Errorf("an owner sets one: %d", got.Status)
	}
	for _, as := range []guest{owner, dev} {
		got := w.Call(as, "GET", page+"?tab=settings", nil)
		if !strings.Contains(got.Body, "<code>Authorization</code>") || strings.Contains(got.Body, "canary") {
			t.Errorf("the page does not name it, or shows its value: %d", got.Status)
		}
		if strings.Contains(got.Body, page+"/headers/remove") != (as == owner) {
			t.Error("the forms are not the owner's alone")
		}
	}
	for field, values := range map[string]url.Values{
		"Name must be a header": {"header": {"a b"}, "value": {canary}}, "Name is set by the service": {"header": {"Host"}, "value": {canary}},
		"Value must be printable ASCII": {"header": {"X-A"}, "value": {canary + "\r\nX-B: 1"}},
	} {
		got := w.Call(owner, "POST", page+"/headers", values, "Referer", w.Origin+page)
		if got.Status != 422 || !strings.Contains(got.Body, field) || strings.Contains(got.Body, "canary") {
			t.Errorf("%s: %d", field, got.Status)
		}
	}
	w.Call(owner, "POST", page+"/headers/remove", url.Values{"header": {"Authorization"}})
	if got := w.Call(owner, "GET", page+"?tab=settings", nil); strings.Contains(got.Body, "<code>Authorization</code></td>") || !strings.Contains(got.Body, "No own headers") {
		t.Error("it is not removed")
	}
}

// An owner rotates behind a fresh proof and sees the new secret once.
func TestTheSecretIsRotatedAndShownOnce(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.account("Acme", 100)
	owner := w.Joined("Ann Example", person.Grant{Role: person.Owner, AccountID: account})
	dev := w.Joined("Bob", person.Grant{Role: person.Developer, AccountID: account})
	project := w.hooked(account, "Shop", "https://hooks.example.com/in")
	page := "/dashboard/projects/" + project + "/webhook"
	found := commandOf.FindStringSubmatch(w.Call(owner, "GET", page+"?tab=settings", nil).Body)
	if found == nil {
		t.Fatal("the form is no command")
	}
	form := url.Values{"command": {found[1]}, "how": {"overlap"}}
	first, again := w.Call(owner, "POST", page+"/rotate", form), w.Call(owner, "POST", page+"/rotate", form)
	secret := regexp.MustCompile(`id="new-secret">([^<]+)<`).FindStringSubmatch(strings.ReplaceAll(first.Body, "&#43;", "+"))
	if secret == nil || !strings.Contains(strings.ReplaceAll(again.Body, "&#43;", "+"), secret[1]) || !strings.Contains(first.Body, "The secret is being replaced.") {
		t.Fatalf("rotated: %d, then %d", first.Status, again.Status)
	}
	if now, err := w.Commands.WebhookSecret(t.Context(), project); err != nil || now != secret[1] {
		t.Errorf("the page shows another secret, %v", err)
	}
	later := w.Call(owner, "GET", page+"?tab=settings", nil)
	if strings.Contains(strings.ReplaceAll(later.Body, "&#43;", "+"), secret[1]) || !strings.Contains(later.Body, "by Ann Example") {
		t.Error("the page shows the secret again, or not who rotated")
	}
	if got := w.Call(dev, "GET", page+"?tab=settings", nil); strings.Contains(got.Body, page+"/rotate") || strings.Contains(got.Body, page+"/finish") {
		t.Error("a developer may rotate")
	}
	if got := w.Call(owner, "POST", page+"/rotate", url.Values{"how": {"overlap"}}); got.Status != 409 {
		t.Errorf("a second rotation: %d", got.Status)
	}
	if got := w.Call(owner, "POST", page+"/finish", url.Values{}); got.Status != 303 {
		t.Errorf("finished: %d", got.Status)
	}
	if got := w.Call(owner, "GET", page+"?tab=settings", nil); strings.Contains(got.Body, "The secret is being replaced.") {
		t.Error("the overlap goes on")
	}
	if got := w.Call(owner, "POST", page+"/rotate", url.Values{"how": {"immediate"}}); !strings.Contains(got.Body, "The new signing secret.") || strings.Contains(got.Body, "The secret is being replaced.") {
		t.Errorf("a leaked secret: %d", got.Status)
	}
	key, err := w.Commands.IssueKey(t.Context(), pagetest.Operator(), account, command.IssueKey{Scope: "full"})
	w.Shown(key.Position, err)
	cause := pagetest.Client(account)
	cause.Actor = "key:" + key.KeyID
	rotated, err := w.Commands.RotateSecret(t.Context(), cause, project, true)
	w.Shown(rotated.Position, err)
	by := regexp.MustCompile(`by API key ([^<]{8,})<`).FindStringSubmatch(w.Call(owner, "GET", page+"?tab=settings", nil).Body)
	if by == nil || !strings.HasPrefix(key.Token, by[1]) {
		t.Errorf("the page says that %q rotated", by)
	}
	// A proof that is old leads to where a new one can be given.
	w.Prove(owner, "1 hour")
	if got := w.Call(owner, "POST", page+"/rotate", url.Values{"how": {"immediate"}}); got.Status != 303 || !strings.HasPrefix(got.Header.Get("Location"), "/signin/confirm") {
		t.Errorf("with an old proof: %d %s", got.Status, got.Header.Get("Location"))
	}
}

// In a browser: the exact bytes, each attempt, a countdown to the next one, and
// the signatures verified with a secret that is sent nowhere.
func TestADeliveryIsVerifiedInTheBrowser(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.account("Acme", 100)
	dev := w.Joined("Ann", person.Grant{Role: person.Developer, AccountID: account})
	e := w.delivering(http.StatusBadGateway, 50*time.Second)
	project := w.hooked(account, `Shop & "Sons"`, e.URL+"/in")
	w.testIn(account, project)
	w.within("an attempt has failed", func() bool {
		list := w.deliveries(account, project, webhooks.StatePending)
		return len(list) == 1 && list[0].Attempts == 1 && !list[0].Sending
	})
	id := w.deliveries(account, project, "")[0].ID
	secret, err := w.Commands.WebhookSecret(t.Context(), project)
	w.Must(err)
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard/deliveries/" + id.String())
	tab.WaitText("Answered 502")
	tab.WaitText("<b>my server</b> says Bad Gateway")
	tab.Wait(`/^in \d+ s$/.test(document.querySelector('time[data-until]').textContent)`)
	whole, err := w.record().Delivery(t.Context(), account, project, id)
	w.Must(err)
	if shown := browsertest.Eval[string](tab, "document.getElementById('body').textContent"); shown != string(whole.Body) {
		t.Errorf("shown is\n%s\nsent was\n%s", shown, whole.Body)
	}
	// An open page asks for itself, and for what changed, at any time.
	sent := "performance.getEntriesByType('resource').filter(e => e.name !== location.href && !e.name.endsWith('/live')).length"
	before := browsertest.Eval[int](tab, sent)
	for _, try := range []struct{ secret, says string }{
		{"whsec_bm90IHRoZSBvbmU=", "X-Service-Signature is not made with this secret. webhook-signature is not made with this secret."},
		{secret, "X-Service-Signature is made with this secret. webhook-signature is made with this secret, too."},
	} {
		tab.Fill("#verify-secret", try.secret)
		tab.Click("[data-verify-now]")
		tab.WaitText(try.says)
		browsertest.Eval[bool](tab, "(document.getElementById('verify-secret').value = '', true)")
	}
	if after := browsertest.Eval[int](tab, sent); after != before {
		t.Errorf("verifying sent %d requests", after-before)
	}
	if browsertest.Eval[bool](tab, "document.getElementById('verify-secret').form !== null") {
		t.Error("the secret belongs to a form")
	}

	// Sent now, it arrives; the page tells without a reload.
	e.code.Store(http.StatusNoContent)
	tab.Click(".actions .btn")
	tab.WaitText("Answered 204")
	tab.WaitText("Delivered")
	if n := e.count(id.String()); n != 2 {
		t.Errorf("it was sent %d times", n)
	}
}
