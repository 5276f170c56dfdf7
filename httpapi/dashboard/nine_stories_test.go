package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pagetest"
	"humanqa/internal/testing/thirdmonth"
	"humanqa/projections/jobs"
)

// clicks counts the clicks of a story.
type clicks struct {
	*browsertest.Tab
	n int
}

func (c *clicks) click(selector, text string) {
	c.n++
	c.Click(selector)
	c.WaitText(text)
}

// story is a story of an owner in the third month, from the overview to its end.
type story struct {
	*world
	month thirdmonth.Month
	owner guest
	tab   *clicks
}

// begins opens the overview, where each story begins. What came before is the story's cause.
func (s story) begins() {
	s.T.Helper()
	s.tab.Open(s.Origin + "/dashboard")
	s.tab.WaitText("Waiting for you")
	s.tab.n = 0
}

// waiting gives the tests that wait for a checker, the newest first.
func (s story) waiting() []jobs.Summary {
	s.T.Helper()
	list, _, err := s.Reads.Jobs.List(s.T.Context(), s.month.AccountID, jobs.Filter{Status: job.StatusPending, Limit: 200})
	s.Must(err)
	if len(list) == 0 {
		s.T.Fatal("no test waits")
	}
	return list
}

// here is the id at the end of the open page's address.
func (s story) here() string {
	path := browsertest.Eval[string](s.tab.Tab, "location.pathname")
	return path[strings.LastIndex(path, "/")+1:]
}

// opensAFailure leads from the overview to the report of a failure that began this week.
func (s story) opensAFailure() {
	s.T.Helper()
	s.tab.click(`section[aria-labelledby=worse] li a.title`, "Open failures")
	s.tab.click(`li.fail .side a[href^="/dashboard/jobs/"]`, "About this test")
}

// Each story that an owner of many projects lives through takes four clicks at most.
func TestNineStoriesTakeFourClicksAtMost(t *testing.T) {
	t.Parallel()
	w, month := ownThirdMonth(t)
	owner := w.SignsIn(month.People[0].ID)
	tab := w.Tab(owner)
	tab.Screen(1280, 800, false)
	for _, one := range []struct {
		name string
		play func(story)
	}{
		{"credits at night", testsWhatWasRefusedAtNight}, // pays for those below
		{"a code by SMS", answersWithACode},
		{"a dispute", disputesAVerdict},
		{"hand over: a failure", handsAFailureOver},
		{"hand over: the account", handsTheAccountOver},
		{"the same batch again", repeatsABatch},
		{"what got worse", findsWhatGotWorse},
		{"who saw secrets", findsWhoSawASecret},
		{"who did what", findsWhoCancelled},
		{"all tests of a host are stopped", stopsAHost},
	} {
		t.Run(one.name, func(t *testing.T) {
			here := *w
			here.Service = w.In(t)
			s := story{world: &here, month: month, owner: owner, tab: &clicks{Tab: tab.In(t)}}
			one.play(s)
			if s.tab.n == 0 || s.tab.n > 4 {
				t.Errorf("it takes %d clicks, want 4 at most", s.tab.n)
			}
			t.Logf("%d clicks", s.tab.n)
		})
	}
}

// Seven credits pay for one more test. Then the deploys of the night are refused, and credits
// come in the morning.
func testsWhatWasRefusedAtNight(s story) {
	s.test(s.month.AccountID, "The last of the evening", nil)
	project := s.refused(s.month.AccountID, s.owner, `{"commitSha":"abcdef0","branch":"main"}`,
		`{"url":"https://preview.example.com/","commitSha":"1234567","branch":"main"}`)
	_, at, err := s.Commands.GrantCredits(s.T.Context(), pagetest.Operator(), s.month.AccountID, 500, nil, "bought")
	s.Shown(at, err)
	s.begins()
	s.tab.WaitText("Test the 2 deploys now for 10 credits")
	s.tab.click("#refused button.btn:not(.btn-quiet)", "The tests are submitted.")
	eventually.True(s.T, "both deploys are tested", func() bool {
		got, err := s.Reads.Jobs.Total(s.T.Context(), s.month.AccountID, job.StatusPending, project)
		return err == nil && got == 2
	})
}

// The answer is a secret, as a code should be.
func answersWithACode(s story) {
	c := s.claims(s.Checker("carol"), s.waiting()[0].ID)
	question := c.asks(0, "A code was sent by SMS to the number that ends in 77. What is it?")
	s.begins()
	s.tab.click("#asked-"+question+" .answer a", "Questions of the checker")
	s.tab.Fill("#answer-secret", "483112")
	s.tab.click("#answer button", "A secret came with the answer.")
	j, err := s.Reads.Jobs.Job(s.T.Context(), s.month.AccountID, c.Claim.JobID)
	s.Must(err)
	if _, open := j.OpenQuestion(); open || len(j.Questions) != 1 || !j.Questions[0].HasSecret {
		s.T.Errorf("the questions are %+v", j.Questions)
	}
}

func disputesAVerdict(s story) {
	s.begins()
	s.opensAFailure()
	s.tab.click(`details[id^="dispute-"] summary`, "What is wrong with this verdict?")
	s.tab.Fill(`[name=why]`, "The page was down for a minute.")
	s.tab.click(`form[action$="/disputes"] button`, "An operator has not decided yet.")
	j, err := s.Reads.Jobs.Job(s.T.Context(), s.month.AccountID, s.here())
	s.Must(err)
	if len(j.Disputes) != 1 || j.Disputes[0].Reason != "The page was down for a minute." {
		s.T.Errorf("the disputes are %+v", j.Disputes)
	}
}

// Whoever mends the failure has no sign-in, and gets a link to it.
func handsAFailureOver(s story) {
	s.begins()
	s.opensAFailure()
	seen := browsertest.Eval[string](s.tab.Tab, `document.querySelector('.failures .seen').innerText`)
	s.tab.click(`#share form[action$="/share"] button`, "The link to this report.")
	link := browsertest.Eval[string](s.tab.Tab, `document.getElementById('new-share').innerText`)
	visitor := s.Tab(guest{})
	visitor.Open(link)
	visitor.WaitText(seen)
}

// Whoever looks after the projects from now on needs the rights of an owner.
func handsTheAccountOver(s story) {
	vera := s.month.People[2]
	s.begins()
	s.tab.click(`nav a[href="/dashboard/members"]`, "Invite a person")
	s.tab.click("#change-"+vera.ID+" summary", "Make an owner")
	s.tab.click("#change-"+vera.ID+" button[value=owner]", "Saved.")
	if row := browsertest.Eval[string](s.tab.Tab, `document.getElementById('person-`+vera.ID+`').innerText`); !strings.Contains(row, "owner") {
		s.T.Errorf("the row of the member is %q", row)
	}
}

func repeatsABatch(s story) {
	s.begins()
	s.tab.click("#day-"+s.month.BatchID+" a.title", "submitted together")
	s.tab.click("#retest-menu summary", "with the same checklists")
	s.tab.click("#retest-menu button", "The batch is submitted.")
	again := s.here()
	list, err := s.Reads.Jobs.Batch(s.T.Context(), s.month.AccountID, again)
	if again == s.month.BatchID || err != nil || len(list) != thirdmonth.Batch {
		s.T.Errorf("the new batch %s has %d tests, %v", again, len(list), err)
	}
}

func findsWhatGotWorse(s story) {
	s.begins()
	s.tab.click(`a[href="/dashboard/projects?show=worse"]`, fmt.Sprintf("Worse this week %d", thirdmonth.Worse))
	if rows := browsertest.Eval[int](s.tab.Tab, `[...document.querySelectorAll('tbody tr')].filter(row => row.querySelector('.fresh')).length`); rows != thirdmonth.Worse {
		s.T.Errorf("%d projects with new failures", rows)
	}
}

func findsWhoSawASecret(s story) {
	id := s.test(s.month.AccountID, "Behind the login", withLogin)
	s.claims(s.Checker("bob"), id).reveals()
	s.begins()
	s.tab.click(`nav a[href="/dashboard/members"]`, "Invite a person")
	s.tab.click(`a[href="/dashboard/secrets"]`, "saw the credentials")
	checker := browsertest.Eval[string](s.tab.Tab, `document.querySelector('tbody a.title').innerText`)
	s.tab.click(`tbody a[href="/dashboard/jobs/`+id+`"]`, checker+" saw the credentials")
}

// A colleague cancelled a test; the owner finds that, and what else this person did.
func findsWhoCancelled(s story) {
	dee := s.month.People[1]
	out, err := s.Commands.CancelJob(s.T.Context(), command.Cause{
		CommandID: domain.NewCommandID(), Actor: "person:" + dee.ID, AccountID: s.month.AccountID,
	}, s.waiting()[0].ID, "client")
	s.Shown(out.Position, err)
	s.begins()
	s.tab.click(`nav a[href="/dashboard/members"]`, "Invite a person")
	s.tab.click(`a[href="/dashboard/activity"]`, "What people, keys and hooks did")
	if row := browsertest.Eval[string](s.tab.Tab, `document.querySelector('tbody tr').innerText`); !strings.Contains(row, dee.Name) || !strings.Contains(row, "cancelled the test") {
		s.T.Errorf("the newest act is %q", row)
	}
	s.tab.click(`tbody a.title[href*="`+dee.ID+`"]`, "Only "+dee.Name)
	if others := browsertest.Eval[int](s.tab.Tab, `[...document.querySelectorAll('tbody a.title')].filter(a => a.innerText !== '`+dee.Name+`').length`); others != 0 {
		s.T.Errorf("%d acts of others", others)
	}
}

// Its host is down, so nothing that waits for it is worth a tester's time. All else goes on.
func stopsAHost(s story) {
	before, host := s.waiting(), ""
	for _, j := range before {
		at, err := url.Parse(j.URL)
		s.Must(err)
		if host == "" && j.ProjectID == s.month.ProjectIDs[thirdmonth.Failing] { // of the batch
			host = at.Host
		}
	}
	paid, err := s.Reads.Credits.Balance(s.T.Context(), s.month.AccountID, time.Now())
	s.Must(err)
	mine := 0
	for _, j := range before {
		if strings.HasPrefix(j.URL, "https://"+host+"/") {
			mine++
		}
	}
	s.begins()
	s.tab.click(`a[href="/dashboard/jobs?status=pending"]`, "Continue with")
	s.tab.Fill("#q", host)
	s.tab.click(".search-words button", fmt.Sprintf("Continue with all %d that match", mine))
	s.tab.click("#take-all", fmt.Sprintf("%d tests leave the queue", mine))
	s.tab.click(`form[action="/dashboard/jobs/cancel"] button`, "What waited is cancelled.")
	after := s.waiting()
	for _, j := range after {
		if strings.HasPrefix(j.URL, "https://"+host+"/") {
			s.T.Errorf("%s of %s waits", j.ID, host)
		}
	}
	if mine < 2 || len(before)-len(after) != mine {
		s.T.Errorf("%d tests of %s waited; %d of %d wait now", mine, host, len(after), len(before))
	}
	back, err := s.Reads.Credits.Balance(s.T.Context(), s.month.AccountID, time.Now())
	s.Must(err)
	if want := paid.Available + domain.Credits(mine)*job.GeneralQA.Price(false); back.Available != want {
		s.T.Errorf("%d credits, want %d", back.Available, want)
	}
}
