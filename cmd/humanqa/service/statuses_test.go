package service

import (
	"context"
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// toldStatuses counts the statuses that a code host was told.
type toldStatuses struct{ n int }

func (s *toldStatuses) Set(context.Context, job.CommitStatus, string, command.StatusUpdate) error {
	s.n++
	return nil
}

func TestACommitStatusIsSetOnceItsVerdictCanBeRead(t *testing.T) {
	t.Parallel()
	newest := domain.Position{Commit: 7, Prepare: 7}
	away := errors.New("away")
	for name, c := range map[string]struct {
		head, behind, want error
		told               int
	}{
		"shown":          {nil, nil, nil, 1},
		"the log is out": {away, nil, away, 0},
		"not shown":      {nil, away, away, 0},
	} {
		host := &toldStatuses{}
		s := readableStatuses{
			host, func(context.Context) (domain.Position, error) { return newest, c.head },
			func(_ context.Context, at domain.Position) error {
				if at != newest || host.n > 0 {
					t.Errorf("%s: it waited for %s behind %d statuses", name, at, host.n)
				}
				return c.behind
			},
		}
		if err := s.Set(t.Context(), job.CommitStatus{}, "", command.StatusUpdate{}); !errors.Is(err, c.want) || host.n != c.told {
			t.Errorf("%s: %d statuses, %v", name, host.n, err)
		}
	}
}
