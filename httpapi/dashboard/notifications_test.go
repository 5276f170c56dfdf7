package dashboard_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi/dashboard/settings"
	"humanqa/httpapi/ui"
	"humanqa/internal/mail"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/pagetest"
	"humanqa/webhooks/notices"
)

// mails runs what turns the log into letters, until the test ends.
func (w *world) mails(smtpd *mailtest.Server) {
	w.T.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	server, err := mail.ParseServer("smtp://"+smtpd.Address+"?starttls=off", "humanqa <qa@qa.example>")
	w.Must(err)
	feed := eventstore.NewFeed(w.Log, log)
	sender := mail.NewSender(mail.Config{
		DB: w.DB, Server: server, Links: w.links(), Grants: w.Commands.Grants, Log: log, Every: time.Millisecond, Poll: 20 * time.Millisecond,
		Retry: 20 * time.Millisecond,
	})
	for _, run := range []func(context.Context) error{feed.Run, consumer.New(w.DB, feed, log, notices.New(w.DB, w.Log, true)).Run, sender.Run} {
		ctx, cancel := context.WithCancel(context.WithoutCancel(w.T.Context()))
		ended := make(chan error, 1)
		go func() { ended <- run(ctx) }()
		w.T.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				w.T.Errorf("a part of the service: %v", err)
			}
		})
	}
}

var linkInLetter = regexp.MustCompile(`https?://\S+(/mail/\S+)`)

// Two people by mail: a report, a failure, low credits; stopped by the link, without a
// sign-in; while the mail server was down nothing was lost, and the pages answered.
func TestPeopleAreToldByMailUntilTheyStopIt(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.account("Acme", 30)
	ann := w.Joined("Ann", person.Grant{Role: person.Owner, AccountID: account})
	bob := w.Joined("Bob", person.Grant{Role: person.Viewer, AccountID: account})
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	smtpd.Refuse(io.ErrUnexpectedEOF)
	w.mails(smtpd)
	save := func(g guest, form url.Values) pagetest.Response {
		return w.Call(g, "POST", "/dashboard/notifications", form, "Referer", w.Origin+"/dashboard/notifications")
	}
	if got := save(ann, pagetest.Form("address", "ann example.com\r\n", "reports", "all")); got.Status != 422 ||
		!strings.Contains(got.Body, "must be an address such as ann@example.com.") || !strings.Contains(got.Body, `value="ann example.com`) {
		t.Errorf("a bad address: %d\n%s", got.Status, got.Body)
	}
	for _, one := range []struct {
		guest
		form url.Values
	}{
		{ann, pagetest.Form("address", "ann@example.com", "reports", "all", "questions", "1", "credits", "1", "webhooks", "1")},
		{bob, pagetest.Form("address", "bob@example.com", "reports", "failures")},
	} {
		if got := save(one.guest, one.form); got.Status != 303 {
			t.Fatalf("the choices: %d\n%s", got.Status, got.Body)
		}
	}
	eventually.True(t, "the page says that the letter was not sent", func() bool {
		page := w.Call(bob, "GET", "/dashboard/notifications", nil).Body
		return strings.Contains(page, "Confirm your address.") && strings.Contains(page, "The last e-mail was not sent.") &&
			!strings.Contains(page, "ann@example.com")
	})
	smtpd.Refuse(nil)
	letter := func(to, words string) mailtest.Letter {
		t.Helper()
		var found mailtest.Letter
		eventually.True(t, to+" is told "+words, func() bool {
			for _, l := range smtpd.Letters() {
				if l.To == to && strings.Contains(l.Body, words) {
					found = l
					return true
				}
			}
			return false
		})
		return found
	}
	asked := letter("ann@example.com", "confirm that it is yours").Header.Get("List-Unsubscribe")
	refuse := strings.TrimSuffix(linkInLetter.FindStringSubmatch(asked)[1], ">")
	if got := w.Call(guest{}, "GET", refuse, nil); got.Status != 200 || !strings.Contains(got.Body, "Stop these letters") || strings.Contains(got.Body, "all e-mail") {
		t.Errorf("the link that ends letters of confirmation: %d\n%s", got.Status, got.Body)
	}
	if got := w.Send(guest{}, "POST", refuse, strings.NewReader("List-Unsubscribe=One-Click"), "Content-Type", "application/x-www-form-urlencoded"); got.Status != 200 || !strings.Contains(got.Body, "Letters to you are stopped") {
		t.Errorf("its button: %d\n%s", got.Status, got.Body)
	}
	if got := w.Call(ann, "POST", "/dashboard/notifications/link", url.Values{}); got.Status != 409 {
		t.Errorf("another link to an address whose reader wants none: %d", got.Status)
	}
	for to, g := range map[string]guest{"ann@example.com": ann, "bob@example.com": bob} {
		path := linkInLetter.FindStringSubmatch(letter(to, "confirm that it is yours").Body)[1]
		if got := w.Call(guest{}, "GET", path, nil); got.Status != 200 || !strings.Contains(got.Body, to) {
			t.Errorf("the link: %d\n%s", got.Status, got.Body)
		}
		if page := w.Call(g, "GET", "/dashboard/notifications", nil).Body; strings.Contains(page, "is confirmed") {
			t.Error("a look at the link confirmed the address")
		}
		if got := w.Call(guest{}, "POST", path, url.Values{}); got.Status != 200 || !strings.Contains(got.Body, "Your address is confirmed") {
			t.Errorf("the button: %d\n%s", got.Status, got.Body)
		}
		if page := w.Call(g, "GET", "/dashboard/notifications", nil).Body; !strings.Contains(page, to+" is confirmed") {
			t.Error("the page does not know of it")
		}
	}
	w.completed(account, "Sign-up", "", job.ItemPass, job.ItemPass, job.ItemPass)
	failed := w.completed(account, "Checkout", "It stays white.", job.ItemFail, job.ItemPass, job.ItemSkip)
	w.completed(account, "Search", "", job.ItemPass, job.ItemPass, job.ItemPass) // leaves 15
	letter("ann@example.com", "Sign-up: 3 of 3 passed")
	letter("ann@example.com", "Checkout: 1 of 3 failed, 1 skipped: The price on the page is the price that is charged")
	letter("ann@example.com", "Credits are low: 15 credits left")
	asking := w.claims(w.Checker("ann"), w.test(account, "Sign-in", nil))
	asking.asks(0, "Which code did you get?")
	if l := letter("ann@example.com", "Sign-in: The checker asks, and waits 30 minutes for your answer"); strings.Contains(l.Body, "Which code") {
		t.Errorf("a letter quotes a question:\n%s", l.Raw)
	}
	told := letter("bob@example.com", "Checkout: 1 of 3 failed, 1 skipped: The price on the page is the price that is charged")
	if !strings.Contains(told.Body, w.Origin+"/dashboard/jobs/"+failed) || strings.Contains(told.Body, "It stays white") {
		t.Errorf("bob got\n%s", told.Raw)
	}
	for _, l := range smtpd.Letters() {
		if l.To == "bob@example.com" && (strings.Contains(l.Body, "Sign-up") || strings.Contains(l.Body, "Credits")) {
			t.Errorf("bob did not choose\n%s", l.Raw)
		}
	}
	stop := linkInLetter.FindStringSubmatch(told.Header.Get("List-Unsubscribe"))[1]
	stop = strings.TrimSuffix(stop, ">")
	if got := w.Call(guest{}, "GET", stop, nil); got.Status != 200 || !strings.Contains(got.Body, "Stop all e-mail") {
		t.Errorf("the link: %d\n%s", got.Status, got.Body)
	}
	// As a mail program does it (RFC 8058).
	if got := w.Send(guest{}, "POST", stop, strings.NewReader("List-Unsubscribe=One-Click"), "Content-Type", "application/x-www-form-urlencoded"); got.Status != 200 {
		t.Errorf("one click: %d\n%s", got.Status, got.Body)
	}
	if page := w.Call(bob, "GET", "/dashboard/notifications", nil).Body; !strings.Contains(page, "E-mail is stopped.") {
		t.Error("the page does not say that e-mail is stopped")
	}
	before := len(smtpd.Letters())
	w.completed(account, "Newsletter", "Nothing came.", job.ItemFail, job.ItemFail, job.ItemFail)
	letter("ann@example.com", "Newsletter: 3 of 3 failed")
	for _, l := range smtpd.Letters()[before:] {
		if l.To == "bob@example.com" {
			t.Errorf("bob stopped e-mail and got\n%s", l.Raw)
		}
	}
	if got := w.Call(guest{}, "GET", "/mail/stop/guess", nil); got.Status != 404 {
		t.Errorf("a guess: %d", got.Status)
	}
	w.Must(w.Credentials.Erase(t.Context(), bob.ID))
	_, err := w.Credentials.EraseAccount(t.Context(), account)
	w.Must(err)
	var left int
	w.Must(w.DB.Get(&left, `SELECT (SELECT count(*) FROM mail.notices) + (SELECT count(*) FROM mail.choices) +
		(SELECT count(*) FROM mail.people WHERE person_id = $1) + (SELECT count(*) FROM mail.letters WHERE person_id = $1)`, bob.ID))
	if left != 0 {
		t.Errorf("%d rows are left of an erased account and person", left)
	}
}

// A service without a mail server says so, and its links lead nowhere.
func TestAServiceWithoutAMailServerSaysSo(t *testing.T) {
	t.Parallel()
	w := &world{Service: pagetest.Start(t, func(s *pagetest.Service) ([]fs.FS, []ui.Page) {
		return []fs.FS{settings.Templates}, settings.Pages(settings.Deps{
			Commands: s.Commands, Reads: s.Reads, Now: time.Now,
		})
	}), boxes: new(sync.Map)}
	ann := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: w.account("Acme", 0)})
	page := w.Call(ann, "GET", "/dashboard/notifications", nil)
	if page.Status != 200 || !strings.Contains(page.Body, "This service sends no e-mail.") || strings.Contains(page.Body, `name="address"`) {
		t.Errorf("the page: %d\n%s", page.Status, page.Body)
	}
	if got := w.Call(ann, "POST", "/dashboard/notifications", pagetest.Form("address", "ann@example.com", "reports", "all")); got.Status != 404 {
		t.Errorf("the choices: %d", got.Status)
	}
	for _, path := range []string{"/mail/stop/x", "/mail/confirm/x"} {
		for _, form := range []url.Values{nil, {}} {
			method := map[bool]string{true: "GET", false: "POST"}[form == nil]
			if got := w.Call(guest{}, method, path, form); got.Status != 404 {
				t.Errorf("%s %s: %d", method, path, got.Status)
			}
		}
	}
}

// The browser tells of a report while any page of the dashboard is open, once it was
// allowed to by a button; another account's reports are never told.
func TestTheBrowserTellsOfReports(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account, other := w.account("Acme", 100), w.account("Globex", 100)
	ann := w.Joined("Ann", person.Grant{Role: person.Viewer, AccountID: account})
	tab := w.NotifiedTab(ann)
	listen := func() {
		browsertest.Eval[bool](tab, `(() => {
			window.notices = []
			window.Notification = class extends Notification { constructor(title, options) { super(title, options); notices.push(title + ': ' + options.body) } }
			return true
		})()`)
	}
	w.completed(account, "Before it is on", "", job.ItemPass, job.ItemPass, job.ItemPass)
	tab.Open(w.Origin + "/dashboard/notifications")
	tab.Wait(`document.querySelector('[data-told]').hidden === false`)
	tab.Click("[data-told]")
	tab.Wait(`document.querySelector('[data-told]').getAttribute('aria-pressed') === 'true'`)
	tab.Wait(`localStorage.getItem('humanqa:told-after') !== null`)
	tab.Open(w.Origin + "/dashboard")
	listen()
	w.completed(other, "Of another account", "", job.ItemFail, job.ItemPass, job.ItemPass)
	w.completed(account, "Checkout", "", job.ItemFail, job.ItemPass, job.ItemPass)
	tab.Wait(`window.notices.length > 0`)
	if got := browsertest.Eval[[]string](tab, "notices"); !slices.Equal(got, []string{"Report: Checkout: 1 of 3 failed"}) {
		t.Errorf("the notices are %q", got)
	}
	tab.Open(w.Origin + "/dashboard/notifications")
	tab.Wait(`document.querySelector('[data-told]').getAttribute('aria-pressed') === 'true'`)
	tab.Click("[data-told]")
	tab.Wait(`document.querySelector('[data-told]').getAttribute('aria-pressed') === 'false'`)
	if got := w.Call(ann, "GET", "/dashboard/notifications/news?after=guess", nil); got.Status != 400 && got.Status != 422 {
		t.Errorf("a cursor that is none: %d", got.Status)
	}
}
