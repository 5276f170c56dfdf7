package ai_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"humanqa/internal/ai"
)

func checklist(t *testing.T, b ai.Brief) []ai.Item {
	t.Helper()
	items, err := ai.Rules{}.Checklist(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func descriptions(items []ai.Item) string {
	var all strings.Builder
	for _, item := range items {
		fmt.Fprintln(&all, item.Description)
	}
	return all.String()
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
	)
	for name, c := range map[string]struct {
		brief ai.Brief
		want  []string
		not   []string
	}{
		"nothing to go by":         {ai.Brief{}, []string{"main thing", navigation}, []string{payment, signIn, cart, upload}},
		"a type alone":             {ai.Brief{JobType: "payment_flow"}, []string{payment}, []string{signIn}},
		"sign-in type":             {ai.Brief{JobType: "auth_flow"}, []string{signIn, "Sign out"}, []string{payment}},
		"form type":                {ai.Brief{JobType: "form_submission"}, []string{form, "twice quickly"}, nil},
		"mobile type":              {ai.Brief{JobType: "mobile_responsive"}, []string{mobile}, nil},
		"story type":               {ai.Brief{JobType: "full_user_story"}, []string{"new visitor"}, nil},
		"first impression":         {ai.Brief{JobType: "first_impression"}, []string{"ten seconds"}, nil},
		"an AI review":             {ai.Brief{JobType: "ai_review"}, []string{"private window"}, nil},
		"words of the URL":         {ai.Brief{URL: "https://example.com/checkout?step=1"}, []string{payment}, []string{signIn}},
		"words of the title":       {ai.Brief{Title: "Log in and out"}, []string{signIn}, []string{payment}},
		"words of the description": {ai.Brief{Description: "Put things into the basket."}, []string{cart}, []string{payment}},
		"words of the feature":     {ai.Brief{Feature: "Avatar upload"}, []string{upload, "this feature from start to end, as a customer would: Avatar upload"}, nil},
		"two topics":               {ai.Brief{Description: "search, then filter; works on an iPhone?"}, []string{search, mobile}, nil},
		"accessibility":            {ai.Brief{Description: "Is it WCAG AA?"}, []string{zoom}, nil},
		"a part of another word":   {ai.Brief{Description: "Performance of the information page, authored by payola"}, nil, []string{form, signIn, payment}},
		"two words that are apart": {ai.Brief{Description: "log the errors in"}, nil, []string{signIn}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := checklist(t, c.brief)
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

func wellFormed(t *testing.T, items []ai.Item) {
	t.Helper()
	if n := len(items); n < 5 || n > 12 {
		t.Errorf("%d items, want 5 to 12", n)
	}
	seen := map[string]bool{}
	for _, item := range items {
		if seen[item.Description] {
			t.Errorf("twice: %q", item.Description)
		}
		seen[item.Description] = true
		if item.ExpectedOutcome == "" || len([]rune(item.Description)) > 1000 {
			t.Errorf("not a useful item: %+v", item)
		}
		switch item.Severity {
		case "critical", "major", "minor":
		default:
			t.Errorf("severity %q of %q", item.Severity, item.Description)
		}
	}
}

func TestEarlierFailuresComeFirst(t *testing.T) {
	t.Parallel()
	items := checklist(t, ai.Brief{
		JobType:         "payment_flow",
		EarlierFailures: []string{"The total is wrong", " ", "the TOTAL is wrong", "No receipt"},
	})
	want := []ai.Item{
		{Description: "The total is wrong", ExpectedOutcome: "What failed in an earlier test now works.", Severity: "critical"},
		{Description: "No receipt", ExpectedOutcome: "What failed in an earlier test now works.", Severity: "critical"},
	}
	if !reflect.DeepEqual(items[:2], want) {
		t.Errorf("starts with %+v, want %+v", items[:2], want)
	}
	wellFormed(t, items)
}

func TestManyEarlierFailuresLeaveRoomForTheTest(t *testing.T) {
	t.Parallel()
	var failures []string
	for i := range 30 {
		failures = append(failures, fmt.Sprintf("failure %d", i))
	}
	items := checklist(t, ai.Brief{JobType: "payment_flow", EarlierFailures: failures})
	wellFormed(t, items)
	all := descriptions(items)
	if strings.Count(all, "failure ") != 8 || !strings.Contains(all, "impossible card number") {
		t.Errorf("want eight failures and the payment's own items, got\n%s", all)
	}
}

func TestTheSameBriefGivesTheSameList(t *testing.T) {
	t.Parallel()
	b := ai.Brief{JobType: "general_qa", URL: "https://shop.example.com", Description: "cart, search, login, upload, forms"}
	first := checklist(t, b)
	wellFormed(t, first)
	if again := checklist(t, b); !reflect.DeepEqual(first, again) {
		t.Errorf("got %+v, then %+v", first, again)
	}
}

func TestALongFeatureIsCut(t *testing.T) {
	t.Parallel()
	wellFormed(t, checklist(t, ai.Brief{Feature: strings.Repeat("ä", 2000)}))
}

func TestTheWriterIsNamed(t *testing.T) {
	t.Parallel()
	if got := (ai.Rules{}).GeneratedBy(); got != "rules" {
		t.Errorf("generated by %q", got)
	}
}
