package mail_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"
	"go.uber.org/goleak"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/mail"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	code := pgtest.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "mail:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// world is a database with people who have roles.
type world struct {
	*testing.T
	db    *sqlx.DB
	links mail.Links
	store *mail.Store

	mu    sync.Mutex
	roles map[string][]person.Grant
}

func setup(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, db: pgtest.New(t), roles: map[string][]person.Grant{}}
	w.links = mail.Links{BaseURL: "https://qa.example", Keys: func(uint32) (uint32, map[uint32][]byte) {
		return 2, map[uint32][]byte{1: []byte("an old key"), 2: []byte("a key")}
	}}
	w.store = mail.NewStore(w.db, time.Now, w.links)
	return w
}

func (w *world) grants(_ context.Context, id string) ([]person.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, there := w.roles[id]; there {
		return g, nil
	}
	return nil, domain.NotFound("person")
}

func (w *world) setRoles(id string, accounts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.roles[id] = nil
	for _, a := range accounts {
		w.roles[id] = append(w.roles[id], person.Grant{Role: person.Owner, AccountID: a})
	}
}

// send runs a sender until it is stopped or the test ends.
func (w *world) send(server *mail.Server, change func(*mail.Config)) (stop func()) {
	w.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	cfg := mail.Config{
		DB: w.db, Server: server, Links: w.links, Grants: w.grants, Log: quiet,
		Every: time.Millisecond, Poll: 10 * time.Millisecond, Retry: 20 * time.Millisecond,
	}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mail.NewSender(cfg).Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); must.NoError(w, <-done) })
	w.Cleanup(stop)
	return stop
}

func (w *world) server(s *mailtest.Server, scheme string) *mail.Server {
	w.Helper()
	server, err := mail.ParseServer(scheme+"://ann:p%40ss@"+s.Address+map[string]string{"smtp": "?starttls=off"}[scheme], "humanqa <qa@qa.example>")
	must.NoError(w, err)
	return server
}

var everything = mail.Choices{Reports: mail.AllReports, Questions: true, Credits: true, Webhooks: true}

// joins is a person with a confirmed address.
func (w *world) joins(id, address string, c mail.Choices, accounts ...string) {
	w.Helper()
	w.setRoles(id, accounts...)
	for _, a := range accounts {
		must.NoError(w, w.store.Save(w.Context(), a, id, address, c))
	}
	_, err := w.db.Exec(`UPDATE mail.people SET confirmed_at = now() - interval '1 hour' WHERE person_id = $1`, id)
	must.NoError(w, err)
	_, err = w.db.Exec(`UPDATE mail.choices SET since = now() - interval '1 hour' WHERE person_id = $1`, id)
	must.NoError(w, err)
	_, err = w.db.Exec(`DELETE FROM mail.letters WHERE person_id = $1`, id)
	must.NoError(w, err)
}

func (w *world) tell(list ...mail.Notice) {
	w.Helper()
	for i := range list {
		if list[i].EventID == uuid.Nil {
			list[i].EventID = uuid.New()
		}
		list[i].At = time.Now()
	}
	must.NoError(w, pgpool.InTx(w.Context(), w.db, func(tx *sqlx.Tx) error { return mail.Add(w.Context(), tx, list, true) }))
}

func report(account, title, verdict string, failed bool) mail.Notice {
	return mail.Notice{AccountID: account, Kind: mail.Report, Failed: failed, Title: title, Project: "Shop", Verdict: verdict, Path: "/dashboard/jobs/j1"}
}

func (w *world) count(query string) (n int) {
	w.Helper()
	must.NoError(w, w.db.Get(&n, query))
	return n
}

var link = regexp.MustCompile(`https://qa\.example/mail/\S+`)

func TestAnAddressIsConfirmedByALinkBeforeAnythingElseIsSent(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	w.setRoles("ann", "acc")
	must.NoError(t, w.store.Save(t.Context(), "acc", "ann", "ann@example.com", everything))
	w.tell(report("acc", "Too early", "1 of 1 failed", true))
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "the link is there", func() bool { return len(smtpd.Letters()) == 1 })
	asked := smtpd.Letters()[0]
	if asked.To != "ann@example.com" || !strings.HasPrefix(asked.Header.Get("List-Unsubscribe"), "<https://qa.example/mail/stop/") || smtpd.User() != "ann" {
		t.Errorf("to %s as %s: %s", asked.To, smtpd.User(), asked.Raw)
	}
	token := strings.TrimPrefix(link.FindString(asked.Body), "https://qa.example/mail/confirm/")
	if _, address, err := w.store.Confirming(t.Context(), token); err != nil || address != "ann@example.com" {
		t.Fatalf("the link %q confirms %q: %v", token, address, err)
	}
	// Another address ends the link: it would confirm what its reader never saw.
	must.NoError(t, w.store.Save(t.Context(), "acc", "ann", "mallory@example.com", everything))
	if err := w.store.Confirm(t.Context(), token); !errors.Is(err, mail.ErrNoLink) {
		t.Errorf("an old link: %v", err)
	}
	eventually.True(t, "the next link is there", func() bool { return len(smtpd.Letters()) == 2 })
	must.NoError(t, w.store.Confirm(t.Context(), strings.TrimPrefix(link.FindString(smtpd.Letters()[1].Body), "https://qa.example/mail/confirm/")))
	w.tell(report("acc", "Checkout", "3 of 11 failed", true))
	eventually.True(t, "the report is there", func() bool { return len(smtpd.Letters()) == 3 })
	told := smtpd.Letters()[2]
	if told.To != "mallory@example.com" || told.Header.Get("Subject") != "Checkout: 3 of 11 failed" ||
		!strings.Contains(told.Body, "Project: Shop\r\nhttps://qa.example/dashboard/jobs/j1\r\n") || strings.Contains(told.Body, "Too early") {
		t.Errorf("to %s:\n%s", told.To, told.Raw)
	}
	for range 3 {
		must.NoError(t, w.store.Save(t.Context(), "acc", "ann", uuid.NewString()+"@example.com", everything))
	}
	if err := w.store.Save(t.Context(), "acc", "ann", "sixth@example.com", everything); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("a sixth address in a day: %v", err)
	}
}

// Several people may give a stranger's address, and its reader has the last word.
func TestLettersOfConfirmationAreBoundedByAddressAndEndedByItsReader(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	asks := func(person, address string) error {
		return w.store.Save(t.Context(), "acc", person, address, everything)
	}
	for _, person := range []string{"a", "b", "c", "d", "e"} {
		must.NoError(t, asks(person, "Reader+"+person+"@example.com"))
	}
	if err := asks("f", "reader@EXAMPLE.com"); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("a sixth letter in a day: %v", err)
	}
	must.NoError(t, asks("f", "other@example.com"))
	_, err := w.db.Exec(`UPDATE mail.addresses SET asked_at = ARRAY(SELECT t - interval '1 day' FROM unnest(asked_at) t)`)
	must.NoError(t, err)
	must.NoError(t, asks("g", "reader@example.com")) // on the next day

	stop := w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "the letters are there", func() bool { return len(smtpd.Letters()) == 7 })
	stop()
	at := slices.IndexFunc(smtpd.Letters(), func(l mailtest.Letter) bool { return l.To == "reader@example.com" })
	asked := smtpd.Letters()[at]
	links := link.FindAllString(asked.Body, -1)
	if len(links) != 2 || asked.Header.Get("List-Unsubscribe") != "<"+links[1]+">" {
		t.Fatalf("the letter is\n%s", asked.Raw)
	}
	must.NoError(t, asks("h", "Reader+h@example.com")) // waits
	token := strings.TrimPrefix(links[1], "https://qa.example/mail/stop/")
	if _, all, err := w.store.Stops(token); err != nil || all {
		t.Errorf("the link stops all e-mail: %t, %v", all, err)
	}
	must.NoError(t, w.store.Stop(t.Context(), token))
	must.NoError(t, w.store.Stop(t.Context(), token))
	if err := asks("i", "reader@example.com"); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("a letter to a reader who wants none: %v", err)
	}
	if err := w.store.AskAgain(t.Context(), "a"); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("again: %v", err)
	}
	w.joins("ann", "ann@example.com", everything, "acc")
	w.tell(report("acc", "Checkout", "3 of 11 failed", true))
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "another's report is there, and the letter that waited is dropped", func() bool {
		return len(smtpd.Letters()) == 8 && w.count(`SELECT count(*) FROM mail.letters WHERE state = 'waiting'`) == 0
	})
	must.NoError(t, w.store.Confirm(t.Context(), strings.TrimPrefix(links[0], "https://qa.example/mail/confirm/")))
	must.NoError(t, asks("i", "reader@example.com"))
}

// A letter of a failed test quotes an item of the client's.
func TestALetterBehindAnErasureHasNoTextOfTheTest(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	w.joins("ann", "ann@example.com", everything, "acc")
	w.tell(report("acc", "Secret title", "1 of 2 failed: Ada: Lovelace signs in", true))
	must.NoError(t, pgpool.InTx(t.Context(), w.db, func(tx *sqlx.Tx) error { return mail.EraseJob(t.Context(), tx, "acc", "j1") }))
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "the letter is there", func() bool { return len(smtpd.Letters()) == 1 })
	if told := smtpd.Letters()[0]; told.Header.Get("Subject") != domain.ErasedText+": 1 of 2 failed" || strings.Contains(told.Raw, "Lovelace") {
		t.Errorf("ann got:\n%s", told.Raw)
	}
}

func TestTwoPeopleAreToldWhatTheyChoseUntilALinkStopsIt(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	w.joins("ann", "ann@example.com", everything, "acc", "other")
	w.joins("bob", "bob@example.com", mail.Choices{Reports: mail.FailuresOnly}, "acc")
	w.joins("eve", "eve@example.com", everything, "acc")
	w.setRoles("eve", "other") // she left the account
	w.tell(report("acc", "Sign-up", "All 5 passed", false), report("acc", "Checkout", "3 of 11 failed", true),
		mail.Notice{AccountID: "acc", Kind: mail.Credits, Title: "Credits are low", Verdict: "15 credits left", Path: "/dashboard/credits"})
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "both are told, and eve's letter is dropped", func() bool {
		return len(smtpd.Letters()) == 2 && w.count(`SELECT count(*) FROM mail.letters WHERE state = 'dropped'`) == 1
	})
	letters := map[string]mailtest.Letter{}
	for _, l := range smtpd.Letters() {
		letters[l.To] = l
	}
	ann, bob := letters["ann@example.com"], letters["bob@example.com"]
	if ann.Header.Get("Subject") != "3 notices, 1 test failed" || !strings.Contains(ann.Body, "Sign-up: All 5 passed") ||
		!strings.Contains(ann.Body, "Credits are low: 15 credits left\r\nhttps://qa.example/dashboard/credits") {
		t.Errorf("ann got:\n%s", ann.Raw)
	}
	if bob.Header.Get("Subject") != "Checkout: 3 of 11 failed" || strings.Contains(bob.Body, "Sign-up") || strings.Contains(bob.Body, "15 credits") {
		t.Errorf("bob got:\n%s", bob.Raw)
	}
	stop := link.FindString(bob.Body)
	if bob.Header.Get("List-Unsubscribe") != "<"+stop+">" || bob.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" {
		t.Errorf("the headers of %s are\n%s", stop, bob.Raw)
	}
	token := strings.TrimPrefix(stop, "https://qa.example/mail/stop/")
	for _, forged := range []string{"", "x", token[:len(token)-2] + "AA", strings.TrimPrefix(link.FindString(ann.Body), "https://qa.example/mail/stop/") + "A"} {
		if err := w.store.Stop(t.Context(), forged); !errors.Is(err, mail.ErrNoLink) {
			t.Errorf("the link %q: %v", forged, err)
		}
	}
	must.NoError(t, w.store.Stop(t.Context(), token))
	must.NoError(t, w.store.Stop(t.Context(), token))
	w.tell(report("acc", "Search", "2 of 2 failed", true))
	eventually.True(t, "ann is told", func() bool { return len(smtpd.Letters()) == 3 })
	if last := smtpd.Letters()[2]; last.To != "ann@example.com" || w.count(`SELECT count(*) FROM mail.notices WHERE person_id = 'bob' AND letter_id IS NULL`) != 0 {
		t.Errorf("%s is told after bob stopped e-mail", last.To)
	}
	must.NoError(t, w.store.Save(t.Context(), "acc", "bob", "bob@example.com", everything))
	w.tell(report("acc", "Again", "1 of 1 failed", true))
	eventually.True(t, "bob is told again", func() bool {
		return slices.ContainsFunc(smtpd.Letters(), func(l mailtest.Letter) bool { return l.To == "bob@example.com" && strings.Contains(l.Body, "Again") })
	})
}

func TestADigestIsSentOnceAnHour(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	w.joins("ann", "ann@example.com", everything, "acc")
	w.joins("bob", "bob@example.com", everything, "other")
	w.send(w.server(smtpd, "smtp"), func(c *mail.Config) { c.Every = time.Hour })
	w.tell(report("acc", "First", "All 1 passed", false))
	eventually.True(t, "the first is told", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'sent'`) == 1 })
	// A question does not wait for the next digest.
	w.tell(mail.Notice{AccountID: "acc", Kind: mail.Question, Title: "Checkout", Project: "Shop", Verdict: "The checker asks", Path: "/dashboard/jobs/j1#questions"})
	eventually.True(t, "the question is told", func() bool { return len(smtpd.Letters()) == 2 })
	if got := smtpd.Letters()[1]; got.Header.Get("Subject") != "Checkout: The checker asks" {
		t.Errorf("the question is told as\n%s", got.Raw)
	}
	again := report("acc", "Second", "All 1 passed", false)
	again.EventID = uuid.New()
	w.tell(again, report("acc", "Third", "All 1 passed", false))
	w.tell(again) // the log is read twice
	w.tell(report("acc", "Fourth", "All 1 passed", false), report("other", "Bob's", "All 1 passed", false))
	eventually.True(t, "bob is told", func() bool { return len(smtpd.Letters()) == 3 }) // so the sender has looked
	_, err := w.db.Exec(`UPDATE mail.people SET digest_at = digest_at - interval '1 hour' WHERE person_id = 'ann'`)
	must.NoError(t, err)
	eventually.True(t, "ann is told the rest", func() bool { return len(smtpd.Letters()) == 4 })
	if got := smtpd.Letters()[3]; got.To != "ann@example.com" || got.Header.Get("Subject") != "3 notices from Shop" || strings.Count(got.Body, "Second") != 1 {
		t.Errorf("%s got\n%s", got.To, got.Raw)
	}
}

// The page of a person who never gave an address tells neither of a confirmed one nor of a
// stopped one.
func TestAPersonWithoutAnAddressIsTheZeroPerson(t *testing.T) {
	w := setup(t)
	if p, err := w.store.Person(t.Context(), "none"); err != nil || p != (mail.Person{}) {
		t.Errorf("got %+v, %v", p, err)
	}
}

// A server that is not there, one that hangs and one that talks for ever lose nothing, and
// the letters to others go on once one of them is well again.
func TestADeadServerLosesNothing(t *testing.T) {
	w := setup(t)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	address := ln.Addr().String()
	hang := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for n := 0; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			busy.Go(func() {
				defer func() { _ = conn.Close() }()
				for n%2 == 1 { // for ever
					if _, err := conn.Write([]byte("220-hello hello hello hello hello hello hello\r\n")); err != nil {
						return
					}
				}
				<-hang
			})
		}
	})
	w.joins("ann", "ann@example.com", everything, "acc")
	w.joins("bob", "bob@example.com", everything, "acc")
	w.tell(report("acc", "Checkout", "3 of 11 failed", true))
	server := w.server(&mailtest.Server{Address: address}, "smtp")
	server.Timeout = 200 * time.Millisecond
	stop := w.send(server, nil)
	eventually.True(t, "it was tried several times", func() bool {
		return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'waiting' AND attempt > 3 AND last_error <> ''`) == 2
	})
	var id string
	must.NoError(t, w.db.Get(&id, `SELECT id FROM mail.letters WHERE person_id = 'ann'`))
	stop()
	close(hang)
	must.NoError(t, ln.Close())
	busy.Wait()
	p, err := w.store.Person(t.Context(), "ann")
	if err != nil || p.Trouble != "the mail server did not take it" {
		t.Errorf("the page does not say that nothing is sent: %+v, %v", p, err)
	}
	if _, err := w.db.Exec(`UPDATE mail.letters SET created_at = now() - interval '3 hours'`); err != nil {
		t.Fatal(err)
	}
	if note, err := mail.Note(t.Context(), w.db); err != nil || !strings.Contains(note, "2 letters wait, the oldest for 3h0m0s") {
		t.Errorf("the note is %q, %v", note, err)
	}
	smtpd := mailtest.Start(t, address, nil)
	w.send(w.server(smtpd, "smtp"), nil) // on a busy machine a letter takes more than 200 ms
	eventually.True(t, "both are told", func() bool { return len(smtpd.Letters()) == 2 })
	for _, l := range smtpd.Letters() {
		if l.To == "ann@example.com" && l.Header.Get("Message-Id") != "<"+id+"@qa.example>" {
			t.Errorf("the letter %s has the Message-ID %s", id, l.Header.Get("Message-Id"))
		}
	}
}

// What was to go to one address goes to the next, once that is confirmed.
func TestAChangeOfAddressLosesNothing(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	smtpd.Refuse(errors.New("not now"))
	w.joins("ann", "old@example.com", everything, "acc")
	w.tell(report("acc", "Checkout", "3 of 11 failed", true))
	stop := w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "it waits", func() bool {
		return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'waiting' AND attempt > 0`) == 1
	})
	stop()
	must.NoError(t, w.store.Save(t.Context(), "acc", "ann", "new@example.com", everything))
	smtpd.Refuse(nil)
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "the link is there", func() bool { return len(smtpd.Letters()) == 1 })
	must.NoError(t, w.store.Confirm(t.Context(), strings.TrimPrefix(link.FindString(smtpd.Letters()[0].Body), "https://qa.example/mail/confirm/")))
	eventually.True(t, "the report is there", func() bool { return len(smtpd.Letters()) == 2 })
	if l := smtpd.Letters()[1]; l.To != "new@example.com" || !strings.Contains(l.Body, "Checkout: 3 of 11 failed") {
		t.Errorf("%s got\n%s", l.To, l.Raw)
	}
}

func TestARefusedLetterIsTriedForThreeDays(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	smtpd.Refuse(&smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such user as canary@example.com"})
	w.joins("ann", "ann@example.com", everything, "acc")
	w.tell(report("acc", "Checkout", "3 of 11 failed", true))
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "it waits after a refusal", func() bool {
		return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'waiting' AND attempt > 1 AND last_error LIKE '%550 5.1.1'`) == 1
	})
	if p, err := w.store.Person(t.Context(), "ann"); err != nil || !strings.HasPrefix(p.Trouble, "the mail server refused it: ") ||
		!strings.Contains(p.Trouble, "550 5.1.1") || strings.Contains(p.Trouble, "canary") {
		t.Errorf("the page does not tell the refusal: %+v, %v", p, err)
	}
	_, err := w.db.Exec(`UPDATE mail.letters SET created_at = created_at - interval '73 hours'`)
	must.NoError(t, err)
	eventually.True(t, "it ends", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'refused'`) == 1 })
}

// The texts of clients and servers end no header and put nothing into a letter that looks
// like ours.
func TestHostileTextsStayInTheirLine(t *testing.T) {
	w := setup(t)
	smtpd := mailtest.Start(t, "127.0.0.1:0", nil)
	w.joins("ann", "ann@example.com", everything, "acc")
	hostile := "Checkout\r\nBcc: eve@example.com\r\n\r\n.\r\nQUIT\u2028\u202e \x00" + strings.Repeat("A", 500)
	n := report("acc", hostile, hostile, true)
	n.Title, n.Verdict = strings.ReplaceAll(n.Title, "\x00", ""), strings.ReplaceAll(n.Verdict, "\x00", "")
	w.tell(n)
	w.send(w.server(smtpd, "smtp"), nil)
	eventually.True(t, "it is told", func() bool { return len(smtpd.Letters()) == 1 })
	l := smtpd.Letters()[0]
	if l.Header.Get("Bcc") != "" || l.To != "ann@example.com" || !strings.HasPrefix(l.Body, "Checkout Bcc: eve@example.com . QUIT AAA") ||
		len(strings.SplitN(l.Body, "\r\n", 2)[0]) > 300 {
		t.Errorf("it was sent as\n%s", l.Raw)
	}
}
