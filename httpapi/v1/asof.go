package v1

import (
	"context"
	"errors"
	"regexp"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/wire"
	"humanqa/projections/events"
)

// cursorForm is the form of a cursor of GET /v1/events.
var cursorForm = regexp.MustCompile(`^[0-9]{1,19}-[0-9]{1,19}(\.[0-9a-f]*)?$`)

// asked is the moment that ?asOf= names, with its echo.
type asked struct {
	events.Until
	echo string
}

// clocksApart is more than a request takes, and than the clocks of machines differ.
const clocksApart = time.Minute

// asOf reads ?asOf=: a time, or a cursor of the account's events; nil is now, or a
// refused value.
func (a *Handlers) asOf(r *wire.Request, p *wire.Problems) (*asked, error) {
	q := r.Query(p)
	text := q.Text("asOf")
	if text == "" {
		return nil, nil
	}
	// The feed tells the state of the jobs at a moment. A feed that is behind would tell
	// it wrongly.
	if err := a.Fresh.RequireFeed(r.Context()); err != nil {
		return nil, err
	}
	if cursorForm.MatchString(text) {
		at := asked{echo: text}
		var ok bool
		if at.Position, _, ok = events.SplitCursor(text); !ok || at.Position == (domain.Position{}) {
			p.Add("asOf", "must be a time, or the cursor of an event")
			return nil, nil
		}
		if _, err := a.cursors.Accept(r.Context(), text); err != nil {
			if refused, ok := errors.AsType[*domain.Error](err); ok {
				return nil, refused.WithHint("name the moment as a time, or by a cursor that this log gave")
			}
			return nil, err
		}
		head, err := a.Head(r.Context())
		if err != nil {
			return nil, err
		}
		if at.Position.Compare(head) > 0 {
			p.Add("asOf", "must not lie ahead of the log")
			return nil, nil
		}
		return &at, nil
	}
	moment := q.Time("asOf")
	if moment == nil {
		return nil, nil
	}
	now, err := a.accountTime(r.Context(), r)
	if err != nil {
		return nil, err
	}
	if moment.After(now) {
		p.Add("asOf", "must not lie ahead of the account's time, %s", now.UTC().Format(wire.TimestampLayout))
		return nil, nil
	}
	// Answers show milliseconds, so a moment includes its whole millisecond.
	whole := moment.Truncate(time.Millisecond).Add(time.Millisecond - time.Nanosecond)
	ahead := max(now.Sub(a.Now()), 0) + clocksApart
	return &asked{Until: events.Until{Moment: whole, Created: whole.Add(ahead)}, echo: moment.UTC().Format(wire.TimestampLayout)}, nil
}

// CursorAt is the position as asOf takes it.
func (a *Handlers) CursorAt(at domain.Position) string { return a.cursors.Tell(events.CursorAt(at)) }

// accountTime is the time of the caller's account.
func (a *Handlers) accountTime(ctx context.Context, r *wire.Request) (time.Time, error) {
	return a.Commands.AccountTime(ctx, command.Cause{AccountID: r.Caller.AccountID, Sandbox: r.Caller.Sandbox})
}

// place is the place of the moment in the log; nil for now.
func (at *asked) place() *events.Until {
	if at == nil {
		return nil
	}
	return &at.Until
}

// then echoes the moment of an answer; nil for now.
func (at *asked) then() *string {
	if at == nil {
		return nil
	}
	return &at.echo
}

// listThen is a list of the account's at the moment of ?asOf=, or now.
func listThen[F, T any](
	r *wire.Request, filter F, at *asked,
	list func(context.Context, string, F) ([]T, int, error), then func(context.Context, string, F, events.Until) ([]T, int, error),
) ([]T, int, error) {
	if at != nil {
		return then(r.Context(), r.Caller.AccountID, filter, at.Until)
	}
	return list(r.Context(), r.Caller.AccountID, filter)
}

// orNotThen turns a not-found error into one that says that there was none yet at the
// moment.
func (at *asked) orNotThen(what string, err error) error {
	if at != nil && domain.IsKind(err, domain.KindNotFound) {
		return domain.NotFound(what).WithHint("there was none yet at %s", at.echo)
	}
	return err
}
