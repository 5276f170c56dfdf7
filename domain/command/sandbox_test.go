package command_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/internal/testing/must"
)

// setSandbox is a stage whose account is a sandbox with 100 credits.
func setSandbox(t *testing.T) stage {
	t.Helper()
	s := setStage(t, 0)
	account, _, err := s.CreateAccount(t.Context(), operator(), "Box", true)
	must.NoError(t, err)
	_, _, err = s.GrantCredits(t.Context(), operator(), account, 100, nil, "")
	must.NoError(t, err)
	s.account = account
	return s
}

func (b bundle) inSandbox() command.Cause {
	c := b.cause()
	c.Sandbox = true
	return c
}

func (b bundle) submitInSandbox(t *testing.T, items ...command.NewItem) string {
	t.Helper()
	j, err := b.SubmitJob(t.Context(), b.inSandbox(), command.SubmitJob{
		Submission: job.Submission{
			URL: "https://example.com", Title: "Title", Description: "Look", Type: job.GeneralQA, TypeEcho: "general_qa",
			Source: "api",
		}, Items: items,
	})
	must.NoError(t, err)
	return j.JobID
}

func threeItems() []command.NewItem {
	return []command.NewItem{
		{Key: "pay", Description: "pay by card", Severity: job.Critical},
		{Key: "mail", Description: "a mail arrives", Severity: job.Major},
		{Key: "look", Description: "looks good", Severity: job.Minor},
	}
}

func wantPaths(t *testing.T, err error, paths ...string) {
	t.Helper()
	var e *domain.Error
	if !errors.As(err, &e) || e.Kind != domain.KindInvalid {
		t.Fatalf("got %v, want a refusal that names %v", err, paths)
	}
	var got []string
	for _, d := range e.Extras["details"].([]domain.Detail) {
		got = append(got, d.Path)
	}
	if !slices.Equal(got, paths) {
		t.Errorf("the refusal names %v, want %v", got, paths)
	}
}

func TestASandboxMovesItsClock(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	c := s.inSandbox()
	for range 2 { // the second is a repeat
		out, err := s.AdvanceClock(t.Context(), c, time.Hour)
		if err != nil || out.Ahead != time.Hour || time.Until(out.Now) < 59*time.Minute {
			t.Fatalf("the clock is %+v, %v, want it an hour ahead", out, err)
		}
	}
	out, err := s.AdvanceClock(t.Context(), s.inSandbox(), time.Minute)
	if err != nil || out.Ahead != 61*time.Minute {
		t.Fatalf("the clock is %+v, %v, want it 61 minutes ahead", out, err)
	}
	t.Run("for everything it does from then on", func(t *testing.T) {
		id := s.submitInSandbox(t, threeItems()...)
		if created := s.job(id).CreatedAt; time.Until(created) < 60*time.Minute {
			t.Errorf("the job was created at %s", created)
		}
	})
	t.Run("within bounds", func(t *testing.T) {
		const year = 365 * 24 * time.Hour
		for _, by := range []time.Duration{0, -time.Second, time.Second - 1, year + time.Second} {
			_, err := s.AdvanceClock(t.Context(), s.inSandbox(), by)
			wantPaths(t, err, "seconds")
		}
		for range 9 {
			_, err := s.AdvanceClock(t.Context(), s.inSandbox(), year)
			must.NoError(t, err)
		}
		_, err := s.AdvanceClock(t.Context(), s.inSandbox(), year)
		wantKind(t, err, domain.KindConflict)
	})
	t.Run("and no other account", func(t *testing.T) {
		people := setup(t, 0)
		people.nothing(t, func() {
			_, err := people.AdvanceClock(t.Context(), people.cause(), time.Hour)
			wantKind(t, err, domain.KindForbidden)
		})
	})
}

func TestMovesAtOnceAddUp(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	nodes := []*command.Service{s.Service, s.service()}
	t.Cleanup(nodes[1].Drain)
	if n := together(16, func(i int) error {
		_, err := nodes[i%2].AdvanceClock(t.Context(), s.inSandbox(), time.Second)
		return err
	}, func(err error) { t.Error(err) }); n != 16 {
		t.Fatalf("%d moves succeeded, want 16", n)
	}
	if out, err := s.AdvanceClock(t.Context(), s.inSandbox(), time.Second); err != nil || out.Ahead != 17*time.Second {
		t.Errorf("the clock is %+v, %v, want it 17 seconds ahead", out, err)
	}
}

func TestARobotPlaysASandboxJob(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	id := s.submitInSandbox(t, threeItems()...)
	report, _, err := s.PlayJob(t.Context(), s.inSandbox(), id, []command.PlayResult{
		{Item: "item-1", Status: job.ItemFail, Note: "declined", Severity: job.Minor},
		{Item: "mail", Status: job.ItemSkip},
	}, "so so")
	must.NoError(t, err)
	want := job.Completed{
		ReportID: report.ReportID, OverallStatus: "fail", PassCount: 1, FailCount: 1, SkipCount: 1, Summary: "so so",
		Items: []job.ReportItem{
			{Item: job.Item{ID: "item-1", Key: "pay", Description: "pay by card", Severity: job.Minor}, Status: job.ItemFail, Note: "declined"},
			{Item: job.Item{ID: "item-2", Key: "mail", Description: "a mail arrives", Severity: job.Major}, Status: job.ItemSkip, Reason: "blocked"},
			{Item: job.Item{ID: "item-3", Key: "look", Description: "looks good", Severity: job.Minor}, Status: job.ItemPass},
		},
		At: report.At,
	}
	if !reflect.DeepEqual(report, want) {
		t.Errorf("the report is %+v, want %+v", report, want)
	}
	wantTypes(t, s.log, domain.JobStream(id), "job.created", "job.claimed", "job.completed")

	t.Run("once: the first report stands", func(t *testing.T) {
		s.nothing(t, func() {
			again, _, err := s.PlayJob(t.Context(), s.inSandbox(), id, []command.PlayResult{{Item: "who", Status: job.ItemFail}}, "new")
			if err != nil || !reflect.DeepEqual(again, want) {
				t.Errorf("the repeat answers %+v, %v", again, err)
			}
		})
	})
	t.Run("once, however many play it", func(t *testing.T) {
		id := s.submitInSandbox(t, threeItems()...)
		reports := make(chan string, 8)
		together(8, func(int) error {
			report, _, err := s.PlayJob(t.Context(), s.inSandbox(), id, nil, "")
			reports <- report.ReportID
			return err
		}, func(err error) { t.Error(err) })
		for first := <-reports; len(reports) > 0; {
			if other := <-reports; other != first {
				t.Errorf("two reports: %s and %s", first, other)
			}
		}
	})
}

func TestARobotAsksAndGoesOn(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	results := []command.PlayResult{{Item: "mail", Status: job.ItemFail, Note: "none came"}}
	in := command.PlayQuestion{Item: "pay", Kind: "code", Text: "Which card?"}
	ask := func() (cause command.Cause, id string, q job.Question) {
		t.Helper()
		id, cause = s.submitInSandbox(t, threeItems()...), s.inSandbox()
		q, _, err := s.AskInPlay(t.Context(), cause, id, in, results, "so so")
		must.NoError(t, err)
		return cause, id, q
	}
	goesOn := func(id string, want ...job.ItemStatus) {
		t.Helper()
		_, err := s.GoOnPlaying(t.Context(), s.inSandbox(), id)
		must.NoError(t, err)
		report := s.job(id).Report
		if report == nil || report.Summary != "so so" {
			t.Fatalf("the report is %+v", report)
		}
		for i, item := range report.Items {
			if item.Status != want[i] {
				t.Errorf("%s is %s, want %s", item.ID, item.Status, want[i])
			}
		}
		s.nothing(t, func() { // the policy fires twice
			_, err := s.GoOnPlaying(t.Context(), s.inSandbox(), id)
			must.NoError(t, err)
		})
	}

	cause, id, q := ask()
	if q.ItemID != "item-1" || !q.Open() {
		t.Errorf("the question is %+v", q)
	}
	s.nothing(t, func() {
		again, _, err := s.AskInPlay(t.Context(), cause, id, in, results, "so so")
		if err != nil || again.ID != q.ID {
			t.Errorf("the repeat answers %+v, %v", again, err)
		}
		_, err = s.GoOnPlaying(t.Context(), s.inSandbox(), id) // it waits
		must.NoError(t, err)
		_, _, err = s.AskInPlay(t.Context(), s.inSandbox(), id, command.PlayQuestion{Kind: "other", Text: "Another?"}, nil, "")
		wantKind(t, err, domain.KindConflict)
	})
	_, _, err := s.AnswerQuestion(t.Context(), s.inSandbox(), id, command.AnswerQuestion{QuestionID: q.ID, Text: "The blue one."})
	must.NoError(t, err)
	goesOn(id, job.ItemPass, job.ItemFail, job.ItemPass)

	_, id, _ = ask()
	_, err = s.AdvanceClock(t.Context(), s.inSandbox(), job.QuestionWait+time.Second)
	must.NoError(t, err)
	_, err = s.ExpireQuestion(t.Context(), s.inSandbox(), id)
	must.NoError(t, err)
	goesOn(id, job.ItemSkip, job.ItemFail, job.ItemPass)

	t.Run("about an item of the list", func(t *testing.T) {
		id := s.submitInSandbox(t, threeItems()...)
		s.nothing(t, func() {
			_, _, err := s.AskInPlay(t.Context(), s.inSandbox(), id, command.PlayQuestion{Item: "nothing", Kind: "code", Text: "?"}, nil, "")
			wantPaths(t, err, "question.item")
			_, _, err = s.AskInPlay(t.Context(), s.inSandbox(), id, in, []command.PlayResult{{Item: "nothing", Status: job.ItemPass}}, "")
			wantPaths(t, err, "results[0].item")
			stranger := s.inSandbox()
			stranger.AccountID = "another"
			_, _, err = s.AskInPlay(t.Context(), stranger, id, in, nil, "")
			wantKind(t, err, domain.KindNotFound)
		})
	})
}

func TestWhatARobotDoesNotPlay(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	id := s.submitInSandbox(t, threeItems()...)
	s.nothing(t, func() {
		_, _, err := s.PlayJob(t.Context(), s.inSandbox(), id, []command.PlayResult{
			{Item: "pay", Status: job.ItemPass}, {Item: "nothing", Status: job.ItemPass}, {Item: "item-1", Status: job.ItemFail},
		}, "")
		wantPaths(t, err, "results[1].item", "results[2].item")
		stranger := s.inSandbox()
		stranger.AccountID = "another"
		_, _, err = s.PlayJob(t.Context(), stranger, id, nil, "")
		wantKind(t, err, domain.KindNotFound)
		_, _, err = s.PlayJob(t.Context(), s.inSandbox(), "no-job", nil, "")
		wantKind(t, err, domain.KindNotFound)
	})
	t.Run("a job of people", func(t *testing.T) {
		people := setup(t, 100)
		id := people.submitted(t)
		people.nothing(t, func() {
			_, _, err := people.PlayJob(t.Context(), people.cause(), id, nil, "")
			wantKind(t, err, domain.KindConflict)
		})
	})
	t.Run("and no person a sandbox's", func(t *testing.T) {
		checker := s.newChecker(t)
		_, err := s.ClaimJob(t.Context(), s.checkerCause(checker), checker, id)
		wantKind(t, err, domain.KindConflict)
	})
}

func TestRobotsPlayASession(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	opened, err := s.CreateSession(t.Context(), s.inSandbox(), aSession(3))
	must.NoError(t, err)
	slot := func(n int) string { return opened.Slots[n-1].JobID }
	_, _, err = s.PlayJob(t.Context(), s.inSandbox(), slot(1), nil, "")
	wantKind(t, err, domain.KindConflict) // the session has not begun

	c := s.inSandbox()
	for range 2 { // the second is a repeat
		got, err := s.ReadySlots(t.Context(), c, opened.SessionID, []int{1, 3})
		if err != nil || got.Status != session.StatusLobby || got.ReadyCount != 2 {
			t.Fatalf("the session is %+v, %v, want two to be ready in the lobby", got, err)
		}
	}
	_, _, err = s.PlayJob(t.Context(), s.inSandbox(), slot(1), nil, "")
	wantKind(t, err, domain.KindConflict)
	got, err := s.ReadySlots(t.Context(), s.inSandbox(), opened.SessionID, nil)
	if err != nil || got.Status != session.StatusActive || got.ReadyCount != 3 {
		t.Fatalf("the session is %+v, %v, want it active", got, err)
	}
	for n := 1; n <= 3; n++ {
		_, _, err := s.PlayJob(t.Context(), s.inSandbox(), slot(n), nil, "")
		must.NoError(t, err)
		wantTypes(t, s.log, domain.JobStream(slot(n)), "job.created", "job.claimed", "job.slot_started", "job.completed")
	}
	ids := map[string]bool{}
	for _, e := range s.log.All() {
		if ids[e.ID.String()] {
			t.Errorf("two events have the id of the %s in %s", e.Type, e.Stream)
		}
		ids[e.ID.String()] = true
	}
}

func TestOnlyASandboxsOwnSlotsGetReady(t *testing.T) {
	t.Parallel()
	s := setSandbox(t)
	opened, err := s.CreateSession(t.Context(), s.inSandbox(), aSession(2))
	must.NoError(t, err)
	s.nothing(t, func() {
		_, err := s.ReadySlots(t.Context(), s.inSandbox(), opened.SessionID, []int{1, 0, 2, 3})
		wantPaths(t, err, "slots[1]", "slots[3]")
		stranger := s.inSandbox()
		stranger.AccountID = "another"
		_, err = s.ReadySlots(t.Context(), stranger, opened.SessionID, nil)
		wantKind(t, err, domain.KindNotFound)
	})
	people := setup(t, 100)
	ofPeople := people.opened(t, 2)
	people.nothing(t, func() {
		_, err := people.ReadySlots(t.Context(), people.cause(), ofPeople.SessionID, nil)
		wantKind(t, err, domain.KindForbidden)
	})
}

func TestLotsExpireByTheTimerWhateverThisMachinesClock(t *testing.T) {
	t.Parallel()
	s := setStage(t, 10)
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	_, _, err := s.GrantCredits(t.Context(), operator(), s.account, 7, &at, "")
	must.NoError(t, err)
	s.nothing(t, func() {
		_, err := s.ExpireLots(t.Context(), s.cause())
		must.NoError(t, err)
	})
	for range 2 {
		c := s.cause()
		c.NotBefore = at
		_, err := s.ExpireLots(t.Context(), c)
		must.NoError(t, err)
	}
	wantTypes(t, s.log, domain.CreditsStream(s.account), "credits.granted", "credits.granted", "credits.lot_expired")
	if l := s.ledger(); l.Balance() != 10 || l.Expired() != 7 {
		t.Errorf("%d credits are left and %d expired, want 10 and 7", l.Balance(), l.Expired())
	}
}
