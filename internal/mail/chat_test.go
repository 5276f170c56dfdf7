package mail_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/internal/mail"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/chattest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
)

// chats are the chats of projects, as the log has them.
type chats struct {
	mu      sync.Mutex
	address map[string]string // by project
	ended   []string
}

func (c *chats) ChatAddress(_ context.Context, _, projectID string) (address, changeID string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.address[projectID], "change-" + projectID, nil
}

func (c *chats) EndChat(_ context.Context, accountID, projectID, changeID, reason string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.address[projectID] = ""
	c.ended = append(c.ended, strings.Join([]string{accountID, projectID, changeID, reason}, " "))
	return nil
}

// chat gives a project a chat since an hour.
func (w *world) chat(accountID, projectID string, reports mail.Reports) {
	w.Helper()
	must.NoError(w, pgpool.InTx(w.Context(), w.db, func(tx *sqlx.Tx) error {
		return mail.SetChat(w.Context(), tx, accountID, projectID, reports, time.Now().Add(-time.Hour))
	}))
}

func (w *world) tells(s *chattest.Server, of *chats, change func(*mail.Config)) (stop func()) {
	w.Helper()
	return w.send(nil, func(c *mail.Config) {
		c.Poster, c.ChatAddress, c.EndChat = s.Poster, of.ChatAddress, of.EndChat
		if change != nil {
			change(c)
		}
	})
}

func in(projectID string, n mail.Notice) mail.Notice {
	n.Projects = []string{projectID}
	return n
}

func content(t *testing.T, m chattest.Message) string {
	t.Helper()
	var body struct{ Content string }
	must.NoError(t, json.Unmarshal([]byte(m.Body), &body))
	return strings.ReplaceAll(body.Content, "\\", "")
}

func TestAChatIsToldOfItsProjectOnceAnHour(t *testing.T) {
	w := setup(t)
	s := chattest.Start(t)
	of := &chats{address: map[string]string{"p1": chattest.Discord, "p2": chattest.Slack}}
	w.chat("acc", "p1", mail.AllReports)
	w.chat("acc", "p2", mail.FailuresOnly)
	w.tell(in("p1", report("acc", "First", "3 of 11 failed", true)), in("p2", report("acc", "Quiet", "All 2 passed", false)),
		report("acc", "Of no project", "1 of 1 failed", true),
		mail.Notice{AccountID: "acc", Kind: mail.Credits, Title: "Credits are low", Verdict: "5 credits left", Path: "/dashboard/credits"})
	w.tells(s, of, func(c *mail.Config) { c.Every = time.Hour })
	eventually.True(t, "the first is told", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'sent'`) == 1 })
	if got := content(t, s.Messages()[0]); got != "Shop: First: 3 of 11 failed\n<https://qa.example/dashboard/jobs/j1>\n" {
		t.Errorf("the first is %q", got)
	}
	w.tell(in("p1", mail.Notice{AccountID: "acc", Kind: mail.Question, Title: "Checkout", Project: "Shop", Verdict: "The checker asks", Path: "/dashboard/jobs/j1#questions"}))
	eventually.True(t, "a question does not wait", func() bool { return len(s.Messages()) == 2 })
	w.tell(in("p1", report("acc", "Second", "All 1 passed", false)), in("p1", report("acc", "Third", "1 of 1 failed", true)), in("p2", report("acc", "Broken", "1 of 1 failed", true)))
	eventually.True(t, "the other chat is told", func() bool { return len(s.Messages()) == 3 }) // so the sender has looked
	if last := s.Messages()[2]; last.Host != "hooks.slack.com" || !strings.Contains(last.Body, "Broken") || strings.Contains(last.Body, "Quiet") {
		t.Errorf("the other chat got %+v", last)
	}
	_, err := w.db.Exec(`UPDATE mail.people SET digest_at = digest_at - interval '1 hour' WHERE person_id = 'p1'`)
	must.NoError(t, err)
	eventually.True(t, "the rest is told together", func() bool { return len(s.Messages()) == 4 })
	if got := content(t, s.Messages()[3]); !strings.HasPrefix(got, "2 notices from Shop, 1 test failed\n") || !strings.Contains(got, "\nShop: Second") || !strings.Contains(got, "\nShop: Third") {
		t.Errorf("the rest is %q", got)
	}
}

// A person's letters and those of chats have one sender. Without a mail server the first wait.
func TestAServiceWithoutAMailServerTellsItsChats(t *testing.T) {
	w := setup(t)
	s, smtpd := chattest.Start(t), mailtest.Start(t, "127.0.0.1:0", nil)
	of := &chats{address: map[string]string{"p1": chattest.Teams}}
	w.joins("ann", "ann@example.com", everything, "acc")
	w.chat("acc", "p1", mail.AllReports)
	w.tell(in("p1", report("acc", "Checkout", "3 of 11 failed", true)))
	stop := w.tells(s, of, nil)
	eventually.True(t, "the chat is told", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'sent'`) == 1 })
	stop()
	if n := w.count(`SELECT count(*) FROM mail.letters WHERE account_id IS NULL`); n != 0 {
		t.Errorf("%d letters to people were made", n)
	}
	w.send(w.server(smtpd, "smtp"), func(c *mail.Config) {
		c.Poster, c.ChatAddress, c.EndChat = s.Poster, of.ChatAddress, of.EndChat
	})
	eventually.True(t, "ann is told", func() bool { return len(smtpd.Letters()) == 1 })
	if n := len(s.Messages()); n != 1 {
		t.Errorf("the chat was told %d times", n)
	}
}

func TestWithoutAMailServerNothingIsWrittenForPeople(t *testing.T) {
	w := setup(t)
	w.joins("ann", "ann@example.com", everything, "acc")
	w.chat("acc", "p1", mail.AllReports)
	list := []mail.Notice{in("p1", report("acc", "Checkout", "3 of 11 failed", true))}
	list[0].EventID, list[0].At = uuid.New(), time.Now()
	must.NoError(t, pgpool.InTx(t.Context(), w.db, func(tx *sqlx.Tx) error { return mail.Add(t.Context(), tx, list, false) }))
	if chat, all := w.count(`SELECT count(*) FROM mail.notices WHERE person_id = 'p1'`), w.count(`SELECT count(*) FROM mail.notices`); chat != 1 || all != 1 {
		t.Errorf("%d notices are the chat's, of %d", chat, all)
	}
}

func TestAChatThatIsGoneEnds(t *testing.T) {
	w := setup(t)
	for i, status := range []int{http.StatusNotFound, http.StatusGone} {
		s := chattest.Start(t)
		s.Status(status, "no_service")
		project := []string{"p1", "p2"}[i]
		of := &chats{address: map[string]string{project: chattest.Slack}}
		w.chat("acc", project, mail.AllReports)
		w.tell(in(project, report("acc", "Checkout", "3 of 11 failed", true)))
		stop := w.tells(s, of, nil)
		eventually.True(t, "the letter is dropped", func() bool {
			return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'dropped' AND person_id = '`+project+`'`) == 1
		})
		w.tell(in(project, report("acc", "Again", "3 of 11 failed", true)))
		eventually.True(t, "the next is dropped", func() bool {
			return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'dropped' AND person_id = '`+project+`'`) == 2
		})
		stop()
		want := "acc " + project + " change-" + project + " the chat answered " + map[int]string{404: "404", 410: "410"}[status]
		if n := len(s.Messages()); n != 1 || !slices.Equal(of.ended, []string{want}) {
			t.Errorf("%d: it was asked %d times, and ended as %q", status, n, of.ended)
		}
	}
}

func TestAChatThatTakesNothingIsTriedForThreeDays(t *testing.T) {
	w := setup(t)
	s := chattest.Start(t)
	of := &chats{address: map[string]string{"p1": chattest.Slack}}
	s.Status(http.StatusTooManyRequests, "", "Retry-After", "3600")
	w.chat("acc", "p1", mail.AllReports)
	w.tell(in("p1", report("acc", "Checkout", "3 of 11 failed", true)))
	w.tells(s, of, nil)
	eventually.True(t, "it waits as long as it is asked to", func() bool {
		return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'waiting' AND due_at > now() + interval '59 minutes'
			AND last_error = 'refused: the chat answered 429'`) == 1
	})
	s.Status(http.StatusInternalServerError, "")
	_, err := w.db.Exec(`UPDATE mail.letters SET due_at = now()`)
	must.NoError(t, err)
	eventually.True(t, "it is tried again", func() bool { return len(s.Messages()) > 3 })
	if note, err := mail.Note(t.Context(), w.db); err != nil || note != "" {
		t.Errorf("the operator is told of a client's chat: %q, %v", note, err)
	}
	_, err = w.db.Exec(`UPDATE mail.letters SET created_at = created_at - interval '73 hours', due_at = now()`)
	must.NoError(t, err)
	if note, err := mail.Note(t.Context(), w.db); err != nil || note != "" {
		t.Errorf("the operator is told of a client's chat: %q, %v", note, err)
	}
	eventually.True(t, "it is given up", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'refused'`) == 1 })
	s.Status(http.StatusOK, "ok")
	w.tell(in("p1", report("acc", "Later", "1 of 1 failed", true)))
	eventually.True(t, "the next is told", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'sent'`) == 1 })
}

// At least once: the process died between the chat's answer and its commit. The letter goes
// out again with the same notices once its lease ends, and no later notice joins it.
func TestAMessageWhoseAnswerWasLostIsToldAgain(t *testing.T) {
	w := setup(t)
	s := chattest.Start(t)
	of := &chats{address: map[string]string{"p1": chattest.Discord}}
	w.chat("acc", "p1", mail.AllReports)
	w.tell(in("p1", report("acc", "Checkout", "3 of 11 failed", true)))
	stop := w.tells(s, of, nil)
	eventually.True(t, "it is told", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'sent'`) == 1 })
	stop()
	_, err := w.db.Exec(`UPDATE mail.letters SET state = 'waiting', settled_at = NULL, due_at = now() + interval '1 minute'`)
	must.NoError(t, err)
	w.tell(in("p1", report("acc", "Later", "1 of 1 failed", true)))
	stop = w.tells(s, of, nil)
	w.chat("acc", "p2", mail.AllReports)
	w.tell(in("p2", report("acc", "Elsewhere", "1 of 1 failed", true)))
	eventually.True(t, "the sender has looked", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'dropped'`) == 1 })
	if n := len(s.Messages()); n != 1 {
		t.Errorf("a leased letter was told %d times", n)
	}
	_, err = w.db.Exec(`UPDATE mail.letters SET due_at = now() WHERE state = 'waiting'`)
	must.NoError(t, err)
	eventually.True(t, "it is told again, and then the later one", func() bool { return len(s.Messages()) == 3 })
	stop()
	if first, again, later := s.Messages()[0], s.Messages()[1], s.Messages()[2]; first.Body != again.Body || !strings.Contains(later.Body, "Later") {
		t.Errorf("it was told %s, then %s, then %s", first.Body, again.Body, later.Body)
	}
}

// Invariant 21: the chats of an account that hang take every place, and the next place is
// another account's.
func TestChatsThatHangKeepNoOtherAccountWaiting(t *testing.T) {
	w := setup(t)
	s := chattest.Start(t)
	s.Poster.Client.Timeout = time.Minute // no place comes back by itself
	held := make(chan struct{})
	s.Answer(func(_ http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "slow") {
			<-held
		}
	})
	of := &chats{address: map[string]string{"good": chattest.Slack}}
	for _, id := range strings.Split("abcdefghijklmnop", "") {
		of.address["slow"+id] = "https://hooks.slack.com/services/slow/B0/0123456789" + id
		w.chat("hostile", "slow"+id, mail.AllReports)
		w.tell(in("slow"+id, report("hostile", "Checkout", "3 of 11 failed", true)))
	}
	stop := w.tells(s, of, nil)
	eventually.True(t, "every place hangs", func() bool { return len(s.Messages()) == 4 })
	w.chat("acc", "good", mail.AllReports)
	w.tell(in("good", report("acc", "Checkout", "3 of 11 failed", true)))
	held <- struct{}{}
	eventually.True(t, "a place is taken again", func() bool { return len(s.Messages()) >= 5 }) // the good one ends at once
	if m := s.Messages()[4]; m.Path != "/services/T0/B0/"+chattest.Secret+"/a1b2" {
		t.Errorf("the place went to %s", m.Path)
	}
	close(held)
	eventually.True(t, "all are told", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE state = 'sent'`) == 17 })
	stop()
}

func TestAChatThatWasRemovedOrErasedLeavesNothing(t *testing.T) {
	w := setup(t)
	w.joins("ann", "ann@example.com", everything, "acc", "other")
	for _, id := range []string{"p1", "p2"} {
		w.chat("acc", id, mail.AllReports)
		w.tell(in(id, report("acc", "Checkout", "3 of 11 failed", true)))
	}
	w.chat("other", "p3", mail.AllReports)
	w.tell(in("p3", report("other", "Checkout", "3 of 11 failed", true)))
	s := chattest.Start(t)
	s.Status(http.StatusServiceUnavailable, "")
	stop := w.tells(s, &chats{address: map[string]string{"p1": chattest.Slack, "p2": chattest.Slack, "p3": chattest.Slack}}, func(c *mail.Config) { c.Retry = time.Hour })
	eventually.True(t, "their letters wait", func() bool { return w.count(`SELECT count(*) FROM mail.letters WHERE last_error <> ''`) == 3 })
	stop()
	rows := func(projectID string) int {
		return w.count(`SELECT (SELECT count(*) FROM mail.people WHERE person_id = '` + projectID + `') + (SELECT count(*) FROM mail.choices WHERE person_id = '` + projectID + `')
			+ (SELECT count(*) FROM mail.letters WHERE person_id = '` + projectID + `') + (SELECT count(*) FROM mail.notices WHERE person_id = '` + projectID + `')`)
	}
	if n := rows("p1"); n != 4 {
		t.Fatalf("%d rows of a chat", n)
	}
	w.chat("acc", "p1", "")
	if a, b := rows("p1"), rows("p2"); a != 0 || b != 4 {
		t.Errorf("%d rows of the chat that was removed, %d of another", a, b)
	}
	must.NoError(t, pgpool.InTx(t.Context(), w.db, func(tx *sqlx.Tx) error { return mail.EraseAccount(t.Context(), tx, "acc") }))
	if a, b, ann := rows("p2"), rows("p3"), w.count(`SELECT count(*) FROM mail.people WHERE person_id = 'ann'`); a != 0 || b != 4 || ann != 1 {
		t.Errorf("%d rows of an erased account's chat, %d of another account's, %d people", a, b, ann)
	}
}
