package workbench_test

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/projections/changes"
)

// Between the end of a claim and the list of completed tests the page names no stream of the
// test: it follows its checker, and so hears that the list has it.
func TestTheQueueFollowsItsChecker(t *testing.T) {
	t.Parallel()
	w := own(t)
	ann, id := w.Checks("Ann")
	if page := w.Call(ann, "GET", "/workbench", nil).Body; !strings.Contains(page, `data-live="`+changes.Queue+" "+changes.Checker(id)+`"`) {
		t.Errorf("it follows something else: %s", page)
	}
}

// A proxy refuses a page's stream while the service starts.
func TestThePageOfARefusedStreamFollowsAllTheSame(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 100, false)
	ann, _ := w.Checks("Ann")
	w.RefuseStreams(true)
	tab := w.Tab(ann)
	tab.Allow("502")
	tab.Open(w.Origin + "/workbench")
	tab.WaitText("No waiting tests")
	// Its first look is over, so that only the stream can tell it of the test.
	tab.Wait(`['/live', '/workbench'].every((end) => performance.getEntriesByType('resource').some((e) => e.name.endsWith(end)))`)
	w.RefuseStreams(false)
	w.test(account, "Checkout with a card", 3)
	tab.WaitText("Checkout with a card")
}

// Three sessions come while a thousand older tests wait, and three checkers only press
// "Take the next": each lobby fills before it closes, and its slots are done before any
// other test. The page tells the true number, and has all tests on its pages.
func TestSessionsAreTakenInTimeBeforeAThousandTests(t *testing.T) {
	t.Parallel()
	w := own(t)
	account := w.Account("Acme", 10_000, false)
	for batch := range 10 {
		in := make([]command.SubmitJob, 100)
		for n := range in {
			in[n] = command.SubmitJob{
				Submission: job.Submission{
					URL: "https://shop.example.com", Title: fmt.Sprintf("Test %d", batch*100+n), Type: job.GeneralQA, TypeEcho: "General QA", Source: "bulk",
				},
				Items: []command.NewItem{{Description: "The page loads", Severity: job.Major}},
			}
		}
		_, err := w.Commands.SubmitBulk(t.Context(), pagetest.Client(account), in)
		w.Must(err)
	}
	var sessions []string
	for range 3 {
		s, err := w.Commands.CreateSession(t.Context(), pagetest.Client(account), command.NewSession{
			Test:  command.HostedTest{Submission: job.Submission{URL: "https://chat.example.com", Feature: "Talk", Source: "session"}, Host: "chat.example.com"},
			Slots: []command.NewSlot{{RoleLabel: "Caller"}, {RoleLabel: "Callee"}, {RoleLabel: "Listener"}},
		})
		w.Must(err)
		sessions = append(sessions, s.SessionID)
	}
	w.Shown(w.Log.Head(t.Context()))

	ann, _ := w.Checks("looks only")
	page := w.Call(ann, "GET", "/workbench", nil).Body
	for _, want := range []string{"1\u202f009 waiting", "1 to 50 of 1\u202f000", "3 free places", "Lobby closes", `href="/workbench?page=2"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the queue does not say %q", want)
		}
	}
	for path, hundred := range map[string]string{"/workbench?page=20": "9", "/workbench?page=999": "9", "/workbench?page=3": "1"} {
		body := w.Call(ann, "GET", path, nil).Body // the tests of a hundred were submitted at the same moment
		if n := len(regexp.MustCompile(`Start: Test `+hundred+`[0-9]{2}"`).FindAllString(body, -1)); n != 50 {
			t.Errorf("%s has %d of the hundred %s", path, n, hundred)
		}
	}

	taken := regexp.MustCompile(`^/workbench/jobs/([0-9a-f-]{36})$`)
	var all sync.WaitGroup
	for n := range 3 {
		g, id := w.Checks(fmt.Sprintf("robot %d", n))
		all.Go(func() {
			for range sessions {
				got := w.Call(g, "POST", "/workbench/claims", nil)
				at := taken.FindStringSubmatch(got.Header.Get("Location"))
				if at == nil {
					t.Errorf("take the next: %d %s", got.Status, got.Header.Get("Location"))
					return
				}
				c := w.draft(id)
				if c.SessionID == "" {
					t.Errorf("%s took %s before the sessions", id, c.Brief.Title)
					return
				}
				token := pagetest.Form("token", fmt.Sprint(c.Token))
				if got := w.Call(g, "POST", at[0]+"/ready", token); got.Status != 303 {
					t.Errorf("ready: %d %s", got.Status, got.Body)
				}
				eventually.True(t, "the session starts", func() bool { return !w.draft(id).Waiting })
				w.completes(id, c, job.ItemPass, "")
			}
		})
	}
	all.Wait()
	for _, id := range sessions {
		eventually.True(t, "the session is completed by all three", func() bool {
			s, err := w.Reads.Sessions.Session(t.Context(), account, id)
			return err == nil && s.Status == session.StatusCompleted && s.PassCount == 3 && s.StartedAt.Before(s.ReadyDeadline)
		})
	}
	if next := w.Call(ann, "POST", "/workbench/claims", nil); next.Status != 303 {
		t.Errorf("the next test: %d", next.Status)
	}
	if page := w.Call(ann, "GET", "/workbench", nil).Body; !strings.Contains(page, "999 waiting") || strings.Contains(page, "Lobby closes") {
		t.Error("the queue still has the sessions")
	}
}
