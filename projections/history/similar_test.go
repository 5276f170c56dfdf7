package history

import (
	"slices"
	"strings"
	"testing"
)

func TestSimilarFailuresShareTheWordsThatTellSomething(t *testing.T) {
	t.Parallel()
	var failures []OpenFailure
	for _, d := range []string{
		"The footer overlaps the button", "The button for the receipt does nothing", "After a declined card the page stays white",
		"Der Knopf für die Quittung tut nichts", "決済ボタンが動かない", "Works",
	} {
		failures = append(failures, OpenFailure{FailedItem: FailedItem{Key: d, Description: d}})
	}
	for text, want := range map[string]string{
		"":                                    "",
		"the":                                 "",
		"for the":                             "",
		"footer overlapping":                  "The footer overlaps the button",
		"a button overlaps the receipt":       "The footer overlaps the button|The button for the receipt does nothing",
		"the button does nothing":             "The button for the receipt does nothing",
		"White page, card declined":           "After a declined card the page stays white",
		"Quittungsknopf, Quittung tut nichts": "Der Knopf für die Quittung tut nichts",
		"決済ボタンが動かない":                          "決済ボタンが動かない",
		"The newsletter cannot be unsubscribed of": "",
		"\x00\xff works": "",
	} {
		var got []string
		for _, f := range Similar(failures, text, 2) {
			got = append(got, f.Description)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%q is like %q", text, got)
		}
	}
	if got := Similar(failures, "button", 0); len(got) != 0 {
		t.Errorf("of none %v", got)
	}
	if !slices.Equal(words("The CARD, the card! 3DS"), []string{"3ds", "card"}) {
		t.Errorf("the words are %q", words("The CARD, the card! 3DS"))
	}
}
