package announce_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/announce"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/domain/subscription"
	"humanqa/internal/testing/must"
)

// A kind whose event the log does not know would never be announced; two kinds
// of one name, or of one event, could not be told apart.
func TestEveryKindAnnouncesOneEventOfTheLogUnderItsOwnName(t *testing.T) {
	t.Parallel()
	logged := map[string]domain.Event{}
	for _, spec := range slices.Concat(job.Specs(), loop.Specs(), session.Specs(), project.Specs(), credits.Specs(), account.Specs()) {
		logged[spec.New().EventType()] = spec.New()
	}
	names := map[string]bool{}
	for _, k := range announce.Kinds() {
		e := logged[k.Type]
		if e == nil {
			t.Errorf("%s announces %q, which the log does not know, or which another kind announces", k.Name, k.Type)
			continue
		}
		delete(logged, k.Type)
		if names[k.Name] {
			t.Errorf("two kinds are named %s", k.Name)
		}
		names[k.Name] = true
		if ended, ok := e.(*loop.Ended); ok {
			ended.Alert = true
		}
		if debited, ok := e.(*credits.Debited); ok {
			debited.Amount, debited.BalanceAfter = 5, credits.DefaultLow-1
		}
		if got, announced := announce.Of(e); !announced || got.Name != k.Name {
			t.Errorf("a %s is announced as %q", k.Type, got.Name)
		}
	}
	for _, e := range logged {
		if k, announced := announce.Of(e); announced {
			t.Errorf("a %s is announced as %s", e.EventType(), k.Name)
		}
	}
}

func TestASnoozedLoopIsNotAnnounced(t *testing.T) {
	t.Parallel()
	if k, announced := announce.Of(&loop.Ended{Alert: false}); announced {
		t.Errorf("announced as %s", k.Name)
	}
}

// Credits are told to be low once, by the debit that made them so.
func TestCreditsBecomeLowOnce(t *testing.T) {
	t.Parallel()
	for after, want := range map[domain.Credits]bool{25: false, 20: false, 19: true, 15: true, 14: false, 0: false} {
		if _, announced := announce.Of(&credits.Debited{Amount: 5, BalanceAfter: after}); announced != want {
			t.Errorf("a debit of 5 that leaves %d: announced %v", after, announced)
		}
		none, own := domain.Credits(0), after+5
		if _, announced := announce.Of(&credits.Debited{Amount: 5, BalanceAfter: after, LowBelow: &none}); announced {
			t.Errorf("without a limit a debit of 5 that leaves %d is announced", after)
		}
		if _, announced := announce.Of(&credits.Debited{Amount: 5, BalanceAfter: after, LowBelow: &own}); !announced {
			t.Errorf("with a limit of %d a debit of 5 that leaves %d is not announced", own, after)
		}
	}
}

func TestAnEventOfAnUnknownTypeIsNotAnnounced(t *testing.T) {
	t.Parallel()
	if _, announced := announce.Of(nil); announced {
		t.Error("it is announced")
	}
}

// The list is the specification's ("Event kinds").
func TestWhatAListMayName(t *testing.T) {
	t.Parallel()
	var subscribable []string
	for _, k := range announce.Kinds() {
		if k.Subscribable {
			subscribable = append(subscribable, k.Name)
		}
	}
	if !slices.Equal(subscribable, subscription.Specified()) {
		t.Errorf("got %q, want %q", subscribable, subscription.Specified())
	}
	var ofAccount, nameable, listed []string
	for _, k := range announce.Kinds() {
		if k.Nameable {
			nameable = append(nameable, k.Name)
		}
		if k.Listed {
			listed = append(listed, k.Name)
		}
		if k.OfAccount {
			ofAccount = append(ofAccount, k.Name)
		}
	}
	if !slices.Equal(nameable, subscription.Questions()) {
		t.Errorf("nameable: %q, want %q", nameable, subscription.Questions())
	}
	if !slices.Equal(listed, subscription.Disputes()) {
		t.Errorf("only where they are listed: %q, want %q", listed, subscription.Disputes())
	}
	if !slices.Equal(ofAccount, subscription.OfAccount()) {
		t.Errorf("of the account: %q, want %q", ofAccount, subscription.OfAccount())
	}
}

// The decisions list the events that no project's list may name.
func TestTheDecisionsListTheUnnamedEvents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/decisions.md")
	must.NoError(t, err)
	_, after, found := strings.Cut(string(text), "### Unnamed events\n")
	section, _, _ := strings.Cut(after, "\n### ")
	if !found {
		t.Fatal("docs/decisions.md has no such section")
	}
	var listed []string
	for _, word := range regexp.MustCompile("`[a-z_]+\\.[a-z_]+`").FindAllString(section, -1) {
		listed = append(listed, strings.Trim(word, "`"))
	}
	var unnamed []string
	for _, k := range announce.Kinds() {
		if !slices.Contains(subscription.Names(), k.Name) {
			unnamed = append(unnamed, k.Name)
		}
	}
	slices.Sort(listed)
	slices.Sort(unnamed)
	if !slices.Equal(listed, unnamed) {
		t.Errorf("listed %q, announced %q", listed, unnamed)
	}
}
