package ai

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"humanqa/domain/command"
	"humanqa/domain/job"
)

func rulesChecklist(t *testing.T, b command.ChecklistBrief) []command.NewItem {
	t.Helper()
	items, by, err := new(Rules).Checklist(t.Context(), b)
	if err != nil || by != "rules" {
		t.Fatalf("written by %q, %v", by, err)
	}
	return items
}

func descriptions(items []command.NewItem) string {
	var all strings.Builder
	for _, item := range items {
		fmt.Fprintln(&all, item.Description)
	}
	return all.String()
}

// A key that changes here changes what a project's earlier tests are compared
// with.
// goldenItems are the fields of items that a writer gives, as the golden files have them.
func goldenItems(items []command.NewItem) (all []any) {
	for _, i := range items {
		all = append(all, struct {
			Key, Description, ExpectedOutcome string
			Severity                          job.Severity
		}{i.Key, i.Description, i.ExpectedOutcome, i.Severity})
	}
	return all
}

func TestTheChecklistOfEachType(t *testing.T) {
	t.Parallel()
	for _, jobType := range job.Types() {
		t.Run(string(jobType), func(t *testing.T) {
			t.Parallel()
			golden(t, "checklist_"+string(jobType), goldenItems(rulesChecklist(t, command.ChecklistBrief{Submission: job.Submission{
				Type: jobType, URL: "https://app.example.com/", Title: "Before the release",
			}})))
		})
	}
}

func TestTheChecklistOfABriefThatSaysALot(t *testing.T) {
	t.Parallel()
	golden(t, "checklist_brief", goldenItems(rulesChecklist(t, command.ChecklistBrief{
		Submission: job.Submission{
			Type: job.Custom, URL: "https://example.com/search", Feature: "Avatar upload", Description: "Works on an iPhone?",
		},
		Failures: []command.Regression{{Item: job.Item{Key: "x", Description: "The receipt of the payment is missing"}}},
	})))
}

func TestAChecklistFollowsTheBrief(t *testing.T) {
	t.Parallel()
	const (
		payment    = "impossible card number"
		signIn     = "wrong password"
		cart       = "two different products"
		form       = "Submit the form empty"
		upload     = "Upload a small file"
		search     = "Search for a word"
		mobile     = "375 pixels"
		navigation = "Follow every link"
		zoom       = "200 %"
		speed      = "usual connection"
	)
	for name, c := range map[string]struct {
		brief command.ChecklistBrief
		want  []string
		not   []string
	}{
		"nothing to go by":         {command.ChecklistBrief{}, []string{"main thing", navigation}, []string{payment, signIn, cart, upload}},
		"a type alone":             {command.ChecklistBrief{Submission: job.Submission{Type: job.PaymentFlow}}, []string{payment}, []string{signIn}},
		"words of the URL":         {command.ChecklistBrief{Submission: job.Submission{URL: "https://example.com/checkout?step=1"}}, []string{payment}, []string{signIn}},
		"words of the title":       {command.ChecklistBrief{Submission: job.Submission{Title: "Log in and out"}}, []string{signIn}, []string{payment}},
		"words of the description": {command.ChecklistBrief{Submission: job.Submission{Description: "Put things into the basket."}}, []string{cart}, []string{payment}},
		"words of the feature":     {command.ChecklistBrief{Submission: job.Submission{Feature: "Avatar upload"}}, []string{upload, "this feature from start to end, as a customer would: Avatar upload"}, nil},
		"words of a failure":       {command.ChecklistBrief{Failures: []command.Regression{{Item: job.Item{Key: "k", Description: "The cart forgets"}}}}, []string{cart}, []string{"The cart forgets"}},
		"two topics":               {command.ChecklistBrief{Submission: job.Submission{Description: "search, then filter; works on an iPhone?"}}, []string{search, mobile}, nil},
		"accessibility":            {command.ChecklistBrief{Submission: job.Submission{Description: "Is it WCAG AA?"}}, []string{zoom}, nil},
		"speed":                    {command.ChecklistBrief{Submission: job.Submission{Description: "it feels laggy"}}, []string{speed}, nil},
		"a part of another word":   {command.ChecklistBrief{Submission: job.Submission{Description: "Formalities of the information page, authored by payola"}}, nil, []string{form, signIn, payment}},
		"two words that are apart": {command.ChecklistBrief{Submission: job.Submission{Description: "log the errors in"}}, nil, []string{signIn}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := rulesChecklist(t, c.brief)
			all := descriptions(items)
			for _, want := range c.want {
				if !strings.Contains(all, want) {
					t.Errorf("no item about %q in\n%s", want, all)
				}
			}
			for _, not := range c.not {
				if strings.Contains(all, not) {
					t.Errorf("an item about %q in\n%s", not, all)
				}
			}
			wellFormed(t, items)
		})
	}
}

// A failure may come to light after the items that open the list were chosen, and a test
// that names its project has none.
func TestAFailureThatOpensNoListIsAskedForAgain(t *testing.T) {
	t.Parallel()
	brief := command.ChecklistBrief{Submission: job.Submission{Type: job.PaymentFlow}}
	own := rulesChecklist(t, brief)
	brief.Failures = []command.Regression{{Item: job.Item{Key: own[1].Key, Description: own[1].Description}}}
	if again := rulesChecklist(t, brief); !slices.Contains(again, own[1]) {
		t.Errorf("%q is in no list:\n%s", own[1].Description, descriptions(again))
	}
}

func TestAnItemThatOpensTheListIsNotAskedForTwice(t *testing.T) {
	t.Parallel()
	own := rulesChecklist(t, command.ChecklistBrief{Submission: job.Submission{Type: job.PaymentFlow}})
	for name, failure := range map[string]job.Item{
		"by its key":         {Key: own[1].Key, Description: "Reworded."},
		"by its description": {Key: "explicit", Description: strings.ToUpper(own[1].Description)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := rulesChecklist(t, command.ChecklistBrief{Submission: job.Submission{Type: job.PaymentFlow}, Opening: []job.Item{failure}})
			wellFormed(t, items)
			for _, i := range items {
				if i.Key == own[1].Key {
					t.Errorf("asks again for %+v", i)
				}
			}
		})
	}
}

func wellFormed(t rapid.TB, items []command.NewItem) {
	t.Helper()
	if n := len(items); n < 5 || n > 12 {
		t.Errorf("%d items, want 5 to 12", n)
	}
	seen := map[string]bool{}
	for _, i := range items {
		if seen[i.Key] || i.Key != job.ReadableKey(i.Description) {
			t.Errorf("key %q of %q is not its own", i.Key, i.Description)
		}
		seen[i.Key] = true
		bounded(t, "description", i.Description, 1000)
		bounded(t, "expected outcome", i.ExpectedOutcome, 1000)
		if _, ok := job.ParseSeverity(string(i.Severity)); !ok || i.Severity == "" {
			t.Errorf("severity %q of %q", i.Severity, i.Description)
		}
	}
}

// bounded wants a line that says something, in limit characters, without
// anything that hides or reorders.
func bounded(t rapid.TB, what, text string, limit int) {
	t.Helper()
	switch n := utf8.RuneCountInString(text); {
	case n == 0 || n > limit:
		t.Errorf("%s of %d characters, want 1 to %d", what, n, limit)
	case !utf8.ValidString(text):
		t.Errorf("%s is no UTF-8: %q", what, text)
	case strings.ContainsAny(text, "\n\r\t\x00\x1b\u202e\u200b"):
		t.Errorf("%s holds a control character: %q", what, text)
	}
}

// hostile draws texts of any bytes, long ones among them.
func hostile() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.SampledFrom([]string{"\u202e", "\xff", "漢", "\n", "e\u0301", "a ", "pay ", "</data>"}),
			func(s string) string { return strings.Repeat(s, 3000) }),
	)
}

func TestNoBriefBreaksTheRules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := command.ChecklistBrief{
			Submission: job.Submission{
				Type: rapid.SampledFrom([]job.Type{job.Custom, job.PaymentFlow, job.FullUserStory, "unknown"}).Draw(t, "type"),
				URL:  hostile().Draw(t, "url"), Title: hostile().Draw(t, "title"),
				Description: hostile().Draw(t, "description"), Feature: hostile().Draw(t, "feature"),
			},
			Opening: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job.Item {
				return job.Item{Key: hostile().Draw(t, "opening key"), Description: hostile().Draw(t, "opening")}
			}), 0, 5).Draw(t, "all opening"),
			Failures: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) command.Regression {
				return command.Regression{Item: job.Item{Key: hostile().Draw(t, "key"), Description: hostile().Draw(t, "failure")}}
			}), 0, 5).Draw(t, "failures"),
		}
		items := checklistByRules(b)
		wellFormed(t, items)
		if again := checklistByRules(b); !reflect.DeepEqual(items, again) {
			t.Errorf("got %+v, then %+v", items, again)
		}
	})
}

func TestEveryTopicHasItems(t *testing.T) {
	t.Parallel()
	for _, of := range catalogue.Topics {
		if of.Label == "" || len(of.Items) == 0 || len(of.Stems) == 0 {
			t.Errorf("incomplete: %+v", of)
		}
		wellGraded(t, of.Label, of.Items)
	}
	wellGraded(t, "basics", catalogue.Basics)
	for of, items := range catalogue.Types {
		wellGraded(t, string(of), items)
		if _, known := job.ParseType(string(of)); !known {
			t.Errorf("there is no type %s", of)
		}
	}
}

// wellGraded wants each item whole: the file is read when the program starts.
func wellGraded(t *testing.T, of string, items []item) {
	t.Helper()
	for _, i := range items {
		if i.Description == "" || i.Expected == "" || rank(i.Severity) < 0 {
			t.Errorf("%s: incomplete: %+v", of, i)
		}
	}
}

func TestTheListOfAReviewIsWhatTheReviewJudges(t *testing.T) {
	t.Parallel()
	b := command.ChecklistBrief{Submission: job.Submission{Type: job.AIReview, URL: "https://app.example.com/", Feature: "Payment"}}
	var keys []string
	for _, i := range rulesChecklist(t, b) {
		keys = append(keys, i.Key)
	}
	var reviewed []string
	for _, i := range review(t, reviewer(t, nil), "https://127.0.0.1/").Items {
		reviewed = append(reviewed, i.Key)
	}
	if !slices.Equal(keys, reviewed) {
		t.Errorf("the list has %v, the review %v", keys, reviewed)
	}
	for _, key := range reviewed {
		b.Opening = append(b.Opening, job.Item{Key: key, Description: "failed before"})
	}
	if rest := rulesChecklist(t, b); len(rest) != 1 || rest[0].Description != catalogue.Basics[0].Description {
		t.Errorf("when all failed before, the list is %+v", rest)
	}
}

func TestTheRulesAreInstant(t *testing.T) {
	t.Parallel()
	if !New(Config{}).Instant() {
		t.Error("the rules ask nobody, so that a submission need not put the list off")
	}
}
