package humanqa_test

import (
	"strings"
	"testing"

	"humanqa"
	"humanqa/eventstore"
)

func TestTheServiceKnowsItsInvariantsAndEvents(t *testing.T) {
	t.Parallel()
	all := humanqa.Invariants()
	live := 0
	for i, one := range all {
		if one.Number != i+1 || one.Text == "" || !strings.Contains(one.HeldBy, "Test") || strings.Contains(one.HeldBy, "`") {
			t.Errorf("invariant %d is %+v", i+1, one)
		}
		if one.Live {
			live++
		}
	}
	if len(all) < 22 || live < 11 || !all[0].Live || !all[2].Live || all[4].Live || !all[12].Live {
		t.Errorf("%d invariants, %d of them are checked on live data", len(all), live)
	}
	for _, name := range eventstore.Types() {
		if humanqa.Meaning(name) == "" {
			t.Errorf("nobody knows what %s means", name)
		}
	}
}
