package input

import (
	"strconv"
	"strings"

	"humanqa/domain/command"
	"humanqa/httpapi/wire"
)

// The headers by which an agent says that its test is a step of a loop
// (decisions, "Loops").
const (
	SkillHeader         = "X-Agent-Skill"
	IterationHeader     = "X-Agent-Iteration"
	MaxIterationsHeader = "X-Agent-Max-Iterations"
)

const (
	maxSkill       = 100
	maxIteration   = 1_000_000
	highestLoopCap = 1000
)

// LoopStep reads an agent's headers; nil when neither the skill nor the iteration is
// there.
func LoopStep(r *wire.Request, p *wire.Problems) *command.LoopStep {
	skills, iterations := r.Header.Values(SkillHeader), r.Header.Values(IterationHeader)
	if len(skills) == 0 && len(iterations) == 0 {
		return nil
	}
	step := &command.LoopStep{Skill: strings.TrimSpace(r.Header.Get(SkillHeader))}
	switch {
	case len(skills) == 0:
		p.Add(SkillHeader, "is required with %s", IterationHeader)
	case step.Skill == "" || len(step.Skill) > maxSkill || !Printable(step.Skill):
		p.Add(SkillHeader, "must be 1 to %d printable ASCII characters", maxSkill)
	}
	if len(iterations) == 0 {
		p.Add(IterationHeader, "is required with %s", SkillHeader)
	} else {
		step.Iteration = wholeHeader(r, p, IterationHeader, maxIteration)
	}
	if len(r.Header.Values(MaxIterationsHeader)) > 0 {
		step.MaxIterations = wholeHeader(r, p, MaxIterationsHeader, highestLoopCap)
	}
	return step
}

func wholeHeader(r *wire.Request, p *wire.Problems, name string, high int) int {
	n, err := strconv.Atoi(strings.TrimSpace(r.Header.Get(name)))
	if err != nil || n < 1 || n > high {
		p.Add(name, "must be a whole number from 1 to %d", high)
		return 0
	}
	return n
}
