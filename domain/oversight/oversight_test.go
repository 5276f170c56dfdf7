package oversight_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/oversight"
	"humanqa/internal/testing/scenario"
)

func TestAnActHasAReasonAndIsWrittenOnce(t *testing.T) {
	t.Parallel()
	given := func(events ...domain.Event) *scenario.Given[oversight.State] {
		return scenario.New(t, oversight.Evolve, events...)
	}
	act := func(id, reason string, what oversight.Act) scenario.Decide[oversight.State] {
		return func(s oversight.State) ([]domain.Event, error) {
			return oversight.DecideAct(s, oversight.Acted{ActID: id, PersonID: "ann", Act: what, Subject: "job-1", Reason: reason})
		}
	}
	refuse := func(s oversight.State) ([]domain.Event, error) {
		return oversight.DecideRefused(s, "a1", "no such job")
	}
	done := &oversight.Acted{ActID: "a1", PersonID: "ann", Act: oversight.Look, Subject: "job-1", Reason: "They asked us to"}
	given().When(act("a1", "  They asked us to ", oversight.Look)).Events(done)
	given(done).When(act("a1", "another reason", oversight.Look)).Nothing()
	given(done).When(act("a2", "They asked us to", oversight.Look)).Happens(&oversight.Acted{ActID: "a2", PersonID: "ann", Act: oversight.Look, Subject: "job-1", Reason: "They asked us to"})
	given().When(act("a1", " \n", oversight.Look)).Invalid("reason")
	given().When(act("a1", strings.Repeat("x", 501), oversight.Look)).Invalid("reason")
	given().When(act("a1", "Why not", "rule_the_world")).Invalid("act")
	for _, user := range []string{strings.Repeat("x", 97), "ann\n"} {
		given().When(func(s oversight.State) ([]domain.Event, error) {
			return oversight.DecideAct(s, oversight.Acted{ActID: "a1", PersonID: oversight.OnCommandLine(user), Act: oversight.Look, Reason: "Why not"})
		}).Invalid("by")
	}
	given(done).When(refuse).Events(&oversight.Refused{ActID: "a1", Problem: "no such job"}).When(refuse).Nothing()
	given(done, &oversight.Refused{ActID: "a1"}).When(act("a1", "They asked us to", oversight.Look)).Conflict("it was refused before")
	given().When(refuse).NotFound("act")
	for _, a := range oversight.Acts() {
		if a.Words() == string(a) {
			t.Errorf("%s has no words", a)
		}
	}
}
