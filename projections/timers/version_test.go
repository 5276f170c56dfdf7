package timers

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"humanqa/domain/policy"
)

// An older process passes over the events that only newer rules know. So a change of what the
// rules react to needs a new version: the newer process then builds the timers anew, and none is
// missing. Write the sum down with the new version.
func TestAChangeOfTheRulesIsANewVersionOfTheTimers(t *testing.T) {
	t.Parallel()
	p := NewProjector(policy.Rules())
	var rules []string
	for _, r := range policy.Rules() {
		rules = append(rules, r.Kind+": "+strings.Join(slices.Sorted(slices.Values(r.Handles)), " "))
	}
	slices.Sort(rules)
	got := fmt.Sprintf("%d %x", p.Version(), sha256.Sum256([]byte(strings.Join(rules, "\n"))))
	if want := "6 90848e7271287a4a7a918d54ed609c1e95bec83a34d01c9ef8a40a82ce997706"; got != want {
		t.Errorf("the rules are %s, want %s", got, want)
	}
}
