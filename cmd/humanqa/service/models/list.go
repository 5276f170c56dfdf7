// Package models lists the consumers of the log for operators.
package models

import (
	"context"
	"fmt"
	"strings"
	"time"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/eventstore/consumer"
)

// Listed is one generation of the JSON form.
type Listed struct {
	Name       string    `json:"name"`
	Version    int       `json:"version"`
	Generation int       `json:"generation"`
	Status     string    `json:"status"`
	Serving    bool      `json:"serving"`
	Position   string    `json:"position"`   // commit/prepare of the last event seen
	Lag        uint64    `json:"lag"`        // positions behind the log's end: events or, of an original server, bytes
	LagSeconds float64   `json:"lagSeconds"` // age of the first event that it has not seen
	Applied    int64     `json:"applied"`
	Unknown    int64     `json:"unknown"`
	Skipped    int64     `json:"skipped"`
	UpdatedAt  time.Time `json:"updatedAt"`
	Owner      string    `json:"owner,omitempty"` // machine:process/id of who runs it
	Failure    *Failure  `json:"failure"`
	Obstacle   string    `json:"obstacle,omitempty"` // what keeps a rebuilt one from being shown
	SetAside   []Aside   `json:"setAside,omitempty"` // the streams that it goes on without
	Notes      []string  `json:"notes,omitempty"`
}

// Aside is a stream that was set aside, by its first event that could not be applied.
type Aside struct {
	Stream string `json:"stream"`
	Type   string `json:"type"`
	Failure
	At  time.Time `json:"at"`
	Due time.Time `json:"due"` // when it is tried again
}

// Failure is the reason why a line stopped, or why a stream was set aside.
type Failure struct {
	Position string `json:"position"`
	Category string `json:"category"`
	Detail   string `json:"detail"`
	Attempts int    `json:"attempts"`
}

// runBy is the owner without the id, which tells apart the parts of one process.
func (l Listed) runBy() string {
	process, _, _ := strings.Cut(l.Owner, "/")
	if process == "" {
		return "nobody"
	}
	return process
}

// Text shows the list to people.
func Text(listed []Listed) string {
	var text strings.Builder
	width := len("projection")
	for _, l := range listed {
		width = max(width, len(l.Name))
	}
	fmt.Fprintf(&text, "%-*s %7s %10s  %-8s %7s %12s %8s %10s  %s",
		width, "name", "version", "generation", "status", "serving", "position", "behind", "applied", "owner")
	for _, l := range listed {
		fmt.Fprintf(&text, "\n%-*s %7d %10d  %-8s %7t %12s %8s %10d  %s",
			width, l.Name, l.Version, l.Generation, l.Status, l.Serving, l.Position, lagText(l.LagSeconds), l.Applied, l.runBy())
		if f := l.Failure; f != nil {
			fmt.Fprintf(&text, "\n  stopped at %s (%s, tried %d times): %s", f.Position, f.Category, f.Attempts, f.Detail)
		}
		if l.Obstacle != "" {
			fmt.Fprintf(&text, "\n  cannot be shown: %s", l.Obstacle)
		}
		for _, note := range l.Notes {
			fmt.Fprintf(&text, "\n  note: %s", note)
		}
		for _, s := range l.SetAside {
			fmt.Fprintf(&text, "\n  set aside: %s, from its %s at %s on (%s, tried %d times): %s", s.Stream, s.Type, s.Position,
				s.Category, s.Attempts, s.Detail)
		}
	}
	return text.String()
}

// List lists every generation. known says that this binary has code of that name.
func List(ctx context.Context, core *service.Core, head domain.Position, known func(name string) bool) ([]Listed, error) {
	all, err := consumer.List(ctx, core.DB)
	if err != nil {
		return nil, err
	}
	var listed []Listed
	for _, s := range all {
		s.Foreign = !known(s.Name)
		l := Listed{
			Name: s.Name, Version: s.Version, Generation: s.Number, Status: string(s.State), Serving: s.Serving,
			Position: s.Position.String(), Lag: behind(s.Position, head),
			Applied: s.Applied, Unknown: s.Unknown, Skipped: s.Skipped, UpdatedAt: s.UpdatedAt.UTC(), Owner: s.Owner,
		}
		if l.Lag > 0 {
			late, err := core.Log.Late(ctx, s.Position, !s.Started, core.Clock.Now())
			if err != nil {
				return nil, err
			}
			l.LagSeconds = late.Seconds()
		}
		l.Obstacle, l.Notes = logging.OneLine(s.Obstacle), s.Notes()
		for _, a := range s.SetAside {
			l.SetAside = append(l.SetAside, Aside{
				Stream: a.Stream, Type: a.Type, At: a.At, Due: a.Due,
				Failure: Failure{Position: a.Position.String(), Category: string(a.Category), Detail: logging.OneLine(a.Detail),
					Attempts: a.Attempts},
			})
		}
		if f := s.Failure; f != nil {
			l.Failure = &Failure{
				Position: f.Position.String(), Category: string(f.Category), Detail: logging.OneLine(f.Detail), Attempts: f.Attempts,
			}
		}
		listed = append(listed, l)
	}
	return listed, nil
}

func behind(at, head domain.Position) uint64 {
	if at.Compare(head) >= 0 {
		return 0
	}
	return head.Commit - at.Commit
}

func lagText(seconds float64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}
