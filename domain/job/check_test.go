package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

// The keys of findings that bring none.
var aTypo, twoTypos = job.KeyFor("A typo."), job.KeyFor("Two typos.")

func check(changes ...func(*job.Check)) decide {
	return func(s job.State) ([]domain.Event, error) {
		c := job.Check{CheckerID: "ann", Token: 1, ItemID: "i1", Status: job.ItemPass, At: minute(6)}
		for _, change := range changes {
			change(&c)
		}
		return job.DecideCheckItem(s, c)
	}
}

func verdict(status job.ItemStatus, reason string) func(*job.Check) {
	return func(c *job.Check) { c.Status, c.Reason = status, reason }
}

func finding(changes ...func(*job.Finding)) decide {
	return func(s job.State) ([]domain.Event, error) {
		f := job.Finding{
			CheckerID: "ann", Token: 1, Item: job.Item{ID: "f1", Description: "A typo."},
			Status: job.ItemFail, Note: "in the footer", At: minute(7),
		}
		for _, change := range changes {
			change(&f)
		}
		return job.DecideAddFinding(s, f)
	}
}

func found(id, key string) *job.FindingAdded {
	return &job.FindingAdded{
		Item:   job.Item{ID: id, Key: key, Description: "A typo.", Severity: job.Major},
		Status: job.ItemFail, Note: "in the footer", At: minute(7),
	}
}

// edited says something else of the finding f1.
func edited(changes ...func(*job.Finding)) decide {
	return func(s job.State) ([]domain.Event, error) {
		f := job.Finding{
			CheckerID: "ann", Token: 1, Item: job.Item{ID: "f1", Description: "Two typos.", Severity: job.Minor}, Status: job.ItemPass, At: minute(8),
		}
		for _, change := range changes {
			change(&f)
		}
		return job.DecideEditFinding(s, f)
	}
}

func withdrawn(id string) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideWithdrawFinding(s, "ann", 1, id, minute(9))
	}
}

func complete(s job.State) ([]domain.Event, error) {
	return job.DecideComplete(s, job.Completion{
		CheckerID: "ann", Token: 1, ReportID: "r1", Summary: "fine", RecordingURL: "https://v.example/1", At: minute(20),
	})
}

func completeAs(checker string, token int) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideComplete(s, job.Completion{CheckerID: checker, Token: token, ReportID: "r9", At: minute(21)})
	}
}

func TestWorkIsOnlyTakenUnderTheLiveClaim(t *testing.T) {
	t.Parallel()
	work := map[string]decide{"check": check(), "finding": finding(), "edit": edited(), "withdraw": withdrawn("f1"), "complete": complete, "release": release("ann", 1),
		"untestable": untestable("ann", 1), "heartbeat": heartbeat("ann", 1, minute(50))}
	for name, d := range work {
		t.Run(name, func(t *testing.T) {
			given(t).When(d).NotFound("job")
			given(t, voided()).When(d).NotFound("job")
			given(t, created()).When(d).Conflict("the claim has ended")
			given(t, created(), cancelled()).When(d).Conflict("the job is cancelled")
			given(t, created(), claimedBy("bob", 1)).When(d).Conflict("the job is claimed by another checker")
			given(t, created(), claimedBy("bob", 1), completed()).When(d).Conflict("the job is completed")
			e := given(t, created(), claimedBy("ann", 1), released(1), claimedBy("ann", 2)).
				When(d).
				Conflict("the claim token is stale")
			if e.Hint != "claim the job again" {
				t.Errorf("the hint is %q", e.Hint)
			}
		})
	}
	for name, d := range map[string]decide{"check": check(), "finding": finding()} {
		t.Run(name+" after completion", func(t *testing.T) {
			given(t, created(), claimedBy("ann", 1), completed()).When(d).Conflict("the job is completed")
		})
	}
}

func TestAVerdict(t *testing.T) {
	t.Parallel()
	t.Run("is recorded with everything that was said", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).
			When(check(func(c *job.Check) {
				c.Status, c.Note, c.Severity, c.Screenshots = job.ItemFail, "500", job.Minor, []string{"https://s.example/1", "https://s.example/2"}
			})).
			Events(&job.ItemChecked{
				ItemID: "i1", Status: job.ItemFail, Note: "500", Severity: job.Minor,
				ScreenshotURL: "https://s.example/1", MoreScreenshotURLs: []string{"https://s.example/2"}, At: minute(6),
			})
	})
	t.Run("is taken back, and a note stands before it", func(t *testing.T) {
		draft := func(c *job.Check) { c.Status, c.Note = job.ItemPending, "slow?" }
		s := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemFail)).
			When(check(draft)).
			Events(&job.ItemChecked{ItemID: "i1", Status: job.ItemPending, Note: "slow?", At: minute(6)}).
			State()
		if item, ok := s.ReportItem("i1"); !ok || item.Status != job.ItemPending || item.Note != "slow?" {
			t.Errorf("the item is %+v, %v", item, ok)
		}
		given(t, created(), claimedBy("ann", 1)).When(check(verdict(job.ItemPending, ""))).Nothing()
		e := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass), checked("i2", job.ItemPass), checked("i1", job.ItemPending)).
			When(complete).
			Conflict("1 item has no verdict yet")
		if got, _ := e.Extras["uncheckedItems"].([]string); !slices.Equal(got, []string{"i1"}) {
			t.Errorf("the refusal names %v", e.Extras)
		}
	})
	t.Run("has at most ten pictures", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).
			When(check(func(c *job.Check) { c.Screenshots = make([]string, job.MaxScreenshots+1) })).
			Invalid("screenshotUrls")
	})
	t.Run("replaces the one before", func(t *testing.T) {
		s := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemFail)).
			When(check()).
			Events(checked("i1", job.ItemPass)).
			State()
		if item, ok := s.ReportItem("i1"); !ok || item.Status != job.ItemPass {
			t.Errorf("the item is %+v, %v", item, ok)
		}
	})
	t.Run("that says the same again changes nothing, the next checker's too", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass)).When(check()).Nothing()
		given(t, created(), claimedBy("bob", 1), checked("i1", job.ItemPass), released(1), claimedBy("ann", 2)).
			When(check(func(c *job.Check) { c.Token = 2 })).
			Nothing()
	})
	t.Run("is about an item of the list", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo)).
			When(check(func(c *job.Check) { c.ItemID = "f1" })).
			NotFound("checklist item")
	})
	t.Run("is one of three", func(t *testing.T) {
		for _, status := range []job.ItemStatus{"", "PASS", "broken"} {
			given(t, created(), claimedBy("ann", 1)).When(check(verdict(status, ""))).Invalid("status")
		}
	})
	t.Run("of a skip says why", func(t *testing.T) {
		for _, reason := range job.SkipReasons() {
			given(t, created(), claimedBy("ann", 1)).
				When(check(verdict(job.ItemSkip, reason))).
				Events(&job.ItemChecked{ItemID: "i1", Status: job.ItemSkip, Reason: reason, At: minute(6)})
		}
		given(t, created(), claimedBy("ann", 1)).When(check(verdict(job.ItemPending, "blocked"))).Invalid("reason")
		for _, reason := range []string{"", "lunch"} {
			given(t, created(), claimedBy("ann", 1)).When(check(verdict(job.ItemSkip, reason))).Invalid("reason")
		}
	})
	t.Run("of anything else does not", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(check(verdict(job.ItemPass, "blocked"))).Invalid("reason")
	})
	t.Run("names everything that is wrong", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).
			When(check(verdict(job.ItemSkip, ""), func(c *job.Check) { c.Severity = "grave" })).
			Invalid("reason", "severity")
	})
}

func TestPictures(t *testing.T) {
	t.Parallel()
	show := func(url string, remove bool) decide {
		return func(s job.State) ([]domain.Event, error) {
			return job.DecideShow(s, job.Show{CheckerID: "ann", Token: 1, ItemID: "i1", Screenshot: url, Remove: remove, At: minute(6)})
		}
	}
	shown := func(status job.ItemStatus, first string, more ...string) *job.ItemChecked {
		return &job.ItemChecked{ItemID: "i1", Status: status, ScreenshotURL: first, MoreScreenshotURLs: more, At: minute(6)}
	}
	t.Run("come one by one, also before the verdict", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(show("a", false)).Events(shown(job.ItemPending, "a"))
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "a")).When(show("b", false)).Events(shown(job.ItemFail, "a", "b"))
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "a", "b")).When(show("b", false)).Nothing()
	})
	t.Run("go one by one", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "a", "b")).When(show("a", true)).Events(shown(job.ItemFail, "b"))
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "b")).When(show("b", true)).Events(shown(job.ItemFail, ""))
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "b")).When(show("x", true)).Nothing()
	})
	t.Run("stay where a verdict leaves them", func(t *testing.T) {
		keep := func(c *job.Check) { c.KeepScreenshots = true }
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "a", "b")).When(check(keep)).Events(shown(job.ItemPass, "a", "b"))
		given(t, created(), claimedBy("ann", 1), shown(job.ItemFail, "a", "b")).When(check()).Events(checked("i1", job.ItemPass))
	})
	t.Run("are taken under the live claim, of an item of the list", func(t *testing.T) {
		given(t, created(), claimedBy("bob", 1)).When(show("a", false)).Conflict("the job is claimed by another checker")
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo)).
			When(func(s job.State) ([]domain.Event, error) {
				return job.DecideShow(s, job.Show{CheckerID: "ann", Token: 1, ItemID: "f1", Screenshot: "a"})
			}).NotFound("checklist item")
	})
}

func TestAFinding(t *testing.T) {
	t.Parallel()
	t.Run("gets a key and a severity where it brings none", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(finding()).Events(found("f1", aTypo))
	})
	t.Run("gets a key that no other item has", func(t *testing.T) {
		second := func(f *job.Finding) { f.Item.ID = "f2" }
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo)).When(finding(second)).Events(found("f2", aTypo+"-2"))
		given(t, created(), claimedBy("ann", 1)).
			When(finding(func(f *job.Finding) { f.Item.Key = "pay" })).
			Events(found("f1", "pay-2"))
	})
	t.Run("keeps the severity it brings", func(t *testing.T) {
		want := found("f1", aTypo)
		want.Item.Severity = job.Critical
		given(t, created(), claimedBy("ann", 1)).
			When(finding(func(f *job.Finding) { f.Item.Severity = job.Critical })).
			Events(want)
	})
	t.Run("names everything that is wrong", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).
			When(finding(func(f *job.Finding) {
				f.Item.Description, f.Item.Severity, f.Status = " ", "grave", job.ItemSkip
			})).
			Invalid("description", "status", "severity")
	})
	t.Run("is one of a hundred at most", func(t *testing.T) {
		events := []domain.Event{created(), claimedBy("ann", 1)}
		for n := range job.MaxFindings {
			events = append(events, found(fmt.Sprint("x", n), fmt.Sprint("x", n)))
		}
		given(t, events...).When(finding()).Conflict("the report has 100 findings, the most it holds")
	})
}

func TestAFindingIsEdited(t *testing.T) {
	t.Parallel()
	edit := func(id, key, description string) *job.FindingEdited {
		return &job.FindingEdited{
			Item: job.Item{ID: id, Key: key, Description: description, Severity: job.Minor}, Status: job.ItemPass, At: minute(8),
		}
	}
	describes := func(text string) func(*job.Finding) {
		return func(f *job.Finding) { f.Item.Description = text }
	}
	t.Run("and has a key of its new words", func(t *testing.T) {
		s := given(t, created(), claimedBy("ann", 1), found("f1", aTypo), found("f2", aTypo+"-2")).
			When(edited()).
			Events(edit("f1", twoTypos, "Two typos.")).
			State()
		if len(s.Findings) != 2 || s.Findings[0].Description != "Two typos." || s.Findings[0].Status != job.ItemPass || s.Findings[0].Note != "" {
			t.Errorf("the findings are %+v", s.Findings)
		}
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo), edit("f1", twoTypos, "Two typos.")).When(edited()).Nothing()
	})
	t.Run("and keeps a key that it was given, or that still fits", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), found("f1", "footer")).When(edited()).Events(edit("f1", "footer", "Two typos."))
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo+"-2")).
			When(edited(describes("A typo."))).
			Events(edit("f1", aTypo+"-2", "A typo."))
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo)).
			When(edited(func(f *job.Finding) { f.Item.Key = "pay" })).
			Events(edit("f1", "pay-2", "Two typos."))
	})
	t.Run("only if it is there, and by words that say something", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(edited()).NotFound("finding")
		given(t, created(), claimedBy("ann", 1), found("f1", aTypo)).When(edited(describes(" "))).Invalid("description")
	})
}

func TestAFindingIsWithdrawn(t *testing.T) {
	t.Parallel()
	gone := &job.FindingWithdrawn{FindingID: "f1", At: minute(9)}
	s := given(t, created(), claimedBy("ann", 1), found("f1", aTypo), found("f2", aTypo+"-2")).
		When(withdrawn("f1")).
		Events(gone).
		State()
	if len(s.Findings) != 1 || s.Findings[0].ID != "f2" {
		t.Errorf("the findings are %+v", s.Findings)
	}
	again := given(t, created(), claimedBy("ann", 1), found("f1", aTypo), gone)
	again.When(withdrawn("f1")).Nothing() // a repeat
	again.When(finding()).Nothing()       // a late repeat of the finding itself
	again.When(edited()).NotFound("finding")
	again.When(withdrawn("f9")).NotFound("finding")
}

func TestComplete(t *testing.T) {
	t.Parallel()
	t.Run("makes the report: the list in its order, then the findings", func(t *testing.T) {
		s := given(t, created(), claimedBy("ann", 1), found("f1", aTypo),
			&job.ItemChecked{ItemID: "i2", Status: job.ItemSkip, Reason: "blocked", At: minute(8)},
			&job.ItemChecked{
				ItemID: "i1", Status: job.ItemPass, Note: "ok", Severity: job.Minor,
				ScreenshotURL: "https://s.example/1", At: minute(9),
			}).
			When(complete).
			Events(&job.Completed{
				ReportID: "r1", OverallStatus: "fail", PassCount: 1, FailCount: 1, SkipCount: 1,
				Summary: "fine", RecordingURL: "https://v.example/1", At: minute(20),
				Items: []job.ReportItem{
					{
						Item:   job.Item{ID: "i1", Key: "log-in", Description: "Log in", Severity: job.Minor},
						Status: job.ItemPass, Note: "ok", ScreenshotURL: "https://s.example/1",
					},
					{
						Item:   job.Item{ID: "i2", Key: "pay", Description: "Pay", Severity: job.Major},
						Status: job.ItemSkip, Reason: "blocked",
					},
					{
						Item:   job.Item{ID: "f1", Key: aTypo, Description: "A typo.", Severity: job.Major},
						Status: job.ItemFail, Note: "in the footer",
					},
				},
			}).
			State()
		if s.Status != job.StatusCompleted || s.ReportID() != "r1" || !s.CompletedAt.Equal(minute(20)) || len(s.ReportItems()) != 3 {
			t.Errorf("the job is %+v", s)
		}
	})
	t.Run("is refused while items are unchecked, and names them", func(t *testing.T) {
		e := given(t, created(), claimedBy("ann", 1), checked("i1", job.ItemPass)).
			When(complete).
			Conflict("1 item has no verdict yet")
		if got, _ := e.Extras["uncheckedItems"].([]string); !slices.Equal(got, []string{"i2"}) {
			t.Errorf("the refusal names %v", e.Extras)
		}
	})
	t.Run("of a job without a list is inconclusive", func(t *testing.T) {
		given(t, created(noList), claimedBy("ann", 1)).When(complete).Events(&job.Completed{
			ReportID: "r1", OverallStatus: "inconclusive", Summary: "fine", RecordingURL: "https://v.example/1",
			Items: []job.ReportItem{}, At: minute(20),
		})
	})
	t.Run("again under the same claim changes nothing: the first report stands", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), completed()).When(completeAs("ann", 1)).Nothing()
	})
	t.Run("again under another claim is refused", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1), completed()).When(completeAs("ann", 2)).Conflict("the job is completed")
		given(t, created(), claimedBy("ann", 1), completed()).When(completeAs("bob", 1)).Conflict("the job is completed")
	})
	t.Run("counts the draft of the checker before", func(t *testing.T) {
		s := given(t, created(), claimedBy("bob", 1), checked("i1", job.ItemPass), checked("i2", job.ItemPass), released(1),
			claimedBy("ann", 2)).State()
		events, err := completeAs("ann", 2)(s)
		if err != nil || len(events) != 1 || events[0].(*job.Completed).PassCount != 2 {
			t.Errorf("decided %v, %v", events, err)
		}
	})
}

func TestOverallStatusAndHealthScore(t *testing.T) {
	t.Parallel()
	item := func(status job.ItemStatus, severity job.Severity) job.ReportItem {
		return job.ReportItem{Item: job.Item{Severity: severity}, Status: status}
	}
	failed := func(critical, major, minor int) []job.ReportItem {
		return slices.Concat(
			slices.Repeat([]job.ReportItem{item(job.ItemFail, job.Critical)}, critical),
			slices.Repeat([]job.ReportItem{item(job.ItemFail, job.Major)}, major),
			slices.Repeat([]job.ReportItem{item(job.ItemFail, job.Minor)}, minor))
	}
	pass, skip := item(job.ItemPass, job.Critical), item(job.ItemSkip, job.Critical)
	for _, c := range []struct {
		name    string
		items   []job.ReportItem
		overall string
		health  int
	}{
		{"nothing is inconclusive", nil, "inconclusive", 100},
		{"skips alone are inconclusive", []job.ReportItem{skip, skip}, "inconclusive", 100},
		{"one pass among skips passes", []job.ReportItem{skip, pass}, "pass", 100},
		{"one fail among passes fails", append(failed(0, 0, 1), pass, pass), "fail", 97},
		{"severities weigh 25, 10 and 3", failed(1, 2, 3), "fail", 46},
		{"health ends at 0", failed(4, 1, 0), "fail", 0},
		{"a page without an answer has no health", []job.ReportItem{
			{Item: job.Item{Key: job.AnswersKey, Severity: job.Critical}, Status: job.ItemFail}, skip,
		}, "fail", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := job.OverallStatus(c.items); got != c.overall {
				t.Errorf("overall %s, wanted %s", got, c.overall)
			}
			if got := job.HealthScore(c.items); got != c.health {
				t.Errorf("health %d, wanted %d", got, c.health)
			}
		})
	}
}

func TestKeysFollowTheDescription(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("very ", 30) + "long"
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"case, blanks and punctuation don't count", "Log in works.", "  log  in\tWORKS!", true},
		{"words count", "Log in works", "Log out works", false},
		{"symbols count", "total < 5", "total > 5", false},
		{"letters beyond ASCII count", "größe", "grüße", false},
		{"the end of a long text counts", long + " one", long + " two", false},
		{"so do texts without a letter", "€", "£", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if a, b := job.KeyFor(c.a), job.KeyFor(c.b); (a == b) != c.same {
				t.Errorf("the keys are %q and %q", a, b)
			}
		})
	}
	// Keys are stored: a change of a rule would cut every item off from its past.
	for description, want := range map[string][2]string{
		"Log in works.": {"item-acec2e7c10cae63f", "log-in-works"}, "total < 5": {"item-216a8882d4be7a71", "total-5-216a8882"},
		"???": {"item-e3b0c44298fc1c14", "item-e3b0c442"}, "支払い": {"item-e78820377e6c7e23", "item-e7882037"},
	} {
		if got := [2]string{job.KeyFor(description), job.ReadableKey(description)}; got != want {
			t.Errorf("the keys of %q are %q, wanted %q", description, got, want)
		}
	}
	if got := job.ReadableKey(long); len(got) > 69 {
		t.Errorf("the key %q is too long", got)
	}
}

func TestKeysOfOneListAreUnique(t *testing.T) {
	t.Parallel()
	pay := job.KeyFor("pay")
	items := []job.Item{
		{Description: "Pay"}, {Description: "pay!"}, {Key: pay + "-2"}, {Key: "x"}, {Key: "x", Description: "Pay"}, {Key: pay},
	}
	keyed := job.UniqueKeys(items)
	keys := make([]string, len(keyed))
	for i, item := range keyed {
		keys[i] = item.Key
	}
	if want := []string{pay + "-3", pay + "-4", pay + "-2", "x", "x-2", pay}; !slices.Equal(keys, want) {
		t.Errorf("the keys are %q, wanted %q", keys, want)
	}
	if items[0].Key != "" {
		t.Error("the given list was changed")
	}
}

func TestTypesAndSeveritiesAreReadInEverySpelling(t *testing.T) {
	t.Parallel()
	for spelling, want := range map[string]job.Type{
		"Payment Flow": job.PaymentFlow, " payment_flow": job.PaymentFlow, "AI REVIEW": job.AIReview,
		"general_QA": job.GeneralQA, "Full User Story": job.FullUserStory,
	} {
		if got, ok := job.ParseType(spelling); !ok || got != want {
			t.Errorf("%q is %q, %v", spelling, got, ok)
		}
	}
	for spelling, want := range map[string]job.Severity{
		"": job.Major, "HIGH": job.Major, "Critical": job.Critical, "medium": job.Minor, "low": job.Minor,
	} {
		if got, ok := job.ParseSeverity(spelling); !ok || got != want {
			t.Errorf("%q is %q, %v", spelling, got, ok)
		}
	}
	if got, ok := job.ParseType("payment"); ok {
		t.Errorf("an unknown type is %q", got)
	}
	if got, ok := job.ParseSeverity("blocker"); ok {
		t.Errorf("an unknown severity is %q", got)
	}
}
