package policy

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Playing is what a sandbox's robot asks of the commands.
type Playing interface {
	GoOnPlaying(ctx context.Context, cause command.Cause, jobID string) (domain.Position, error)
}

// Player has a robot go on with its work once its question has an answer, or is closed
// without one.
type Player struct{ Playing Playing }

// Kind implements Policy.
func (Player) Kind() string { return "player" }

// Handles implements Rule.
func (Player) Handles() []string { return domain.TypesOf(&job.AnswerGiven{}, &job.QuestionClosed{}) }

// React implements Rule. A job may have several questions, so the timer may be set again.
func (p Player) React(r domain.Recorded) []Change {
	robot := false
	switch e := r.Event.(type) {
	case *job.AnswerGiven:
		robot = e.Robot
	case *job.QuestionClosed:
		robot = e.Robot
	}
	if !robot {
		return nil
	}
	change := now(p.Kind(), r, r.Meta.AccountID)
	change.First = false
	return []Change{change}
}

// Fire implements Policy.
func (p Player) Fire(ctx context.Context, t Timer) error {
	_, err := p.Playing.GoOnPlaying(ctx, cause(t), t.Key)
	return err
}
