// Package fold shows the state of a stream after each of its events, for human eyes.
package fold

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/host"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/person"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/eventstore"
)

// Fold is a stream's state after some of its events.
type Fold struct {
	evolve func(domain.Event) any
}

// states begins with the empty state of a stream, by its category.
var states = map[string]func() func(domain.Event) any{
	domain.AccountStreams: evolves(account.Evolve),
	domain.CheckerStreams: evolves(checker.Evolve),
	domain.CreditsStreams: ledgerOf,
	domain.HostStreams:    evolves(host.Evolve),
	domain.JobStreams:     evolves(job.Evolve),
	domain.LoopStreams:    evolves(loop.Evolve),
	domain.PersonStreams:  evolves(person.Evolve),
	domain.ProjectStreams: evolves(project.Evolve),
	domain.SessionStreams: evolves(session.Evolve),
}

// New begins with the empty state of a stream. A stream of an unknown category
// has no state.
func New(stream string) *Fold {
	category, _, _ := strings.Cut(stream, "-")
	if begin, known := states[category+"-"]; known {
		return &Fold{begin()}
	}
	return &Fold{func(domain.Event) any { return nil }}
}

func evolves[S any](evolve func(S, domain.Event) S) func() func(domain.Event) any {
	return func() func(domain.Event) any {
		var s S
		return func(e domain.Event) any {
			s = evolve(s, e)
			return s
		}
	}
}

// ledger is the state of a ledger as a fold shows it.
type ledger struct {
	Granted, Used, Expired, Balance domain.Credits
	Lots                            []credits.Lot
}

func ledgerOf() func(domain.Event) any {
	var s credits.State
	return func(e domain.Event) any {
		s = credits.Evolve(s, e)
		return ledger{s.Granted(), s.Used(), s.Expired(), s.Balance(), s.Lots(time.Time{})}
	}
}

// After is the state after one more event, as JSON with secrets replaced. An
// event of an unknown type changes nothing.
func (f *Fold) After(e eventstore.RawEvent) (json.RawMessage, error) {
	r, err := e.Decode()
	if err != nil {
		return nil, err
	}
	state, err := json.Marshal(f.evolve(r.Event))
	if err != nil {
		return nil, fmt.Errorf("show the state of %s: %w", e.Stream, err)
	}
	var shown any
	if err := json.Unmarshal(state, &shown); err != nil {
		return nil, fmt.Errorf("show the state of %s: %w", e.Stream, err)
	}
	if state, err = domain.EncodeJSON(hidden(shown)); err != nil {
		return nil, fmt.Errorf("show the state of %s: %w", e.Stream, err)
	}
	return state, nil
}

// hidden replaces the fields that hold a secret.
func hidden(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if text, ok := value.(string); ok && text != "" && eventstore.IsSecret(name) {
				v[name] = domain.HiddenText
			} else {
				v[name] = hidden(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = hidden(v[i])
		}
	}
	return v
}
