package command_test

import (
	"testing"

	"humanqa/domain/command"
	"humanqa/internal/testing/must"
)

func TestATestNamesTheLoopSessionThatCountsIt(t *testing.T) {
	t.Parallel()
	b := setupHosted(t, 100)
	c, in := b.cause(), aTest()
	in.Loop = &command.LoopStep{Skill: "fix-shop", Iteration: 1}
	first, err := b.TestHosted(t.Context(), c, in)
	must.NoError(t, err)
	running := b.loopState(command.LoopID(first.ProjectID, "fix-shop")).Session.ID
	if running == "" || first.LoopSessionID != running {
		t.Errorf("the first test names %q, want %q", first.LoopSessionID, running)
	}
	if second := b.iterate(t, 2); second.LoopSessionID != running {
		t.Errorf("the second test names %q, want %q", second.LoopSessionID, running)
	}
	again := b.iterate(t, 1) // the agent begins anew
	if again.LoopSessionID == "" || again.LoopSessionID == running {
		t.Errorf("the next session's test names %q", again.LoopSessionID)
	}
	repeat, err := b.process().TestHosted(t.Context(), c, in)
	if err != nil || repeat.JobID != first.JobID || repeat.LoopSessionID != running {
		t.Errorf("the repeat names %q, %v, want %q", repeat.LoopSessionID, err, running)
	}
	if plain := b.test(t, aTest()); plain.LoopSessionID != "" {
		t.Errorf("a test without a loop names %q", plain.LoopSessionID)
	}
}
