package httpapi

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/projections/events"
)

// cursorForm is that of a cursor of GET /v1/events.
var cursorForm = regexp.MustCompile(`^[0-9]{1,19}-[0-9]{1,19}$`)

// asked is what ?asOf= names, as it is echoed.
type asked struct {
	events.Until
	echo string
}

// namesMoment says whether the request has ?asOf=.
func (r *request) namesMoment() bool {
	var p problems
	return parseQuery(r.URL.RawQuery, &p).text("asOf") != "" // what else is wrong with the query the handler says
}

// refuseMoment refuses ?asOf= on a read that shows no state of the past.
func (a *API) refuseMoment(r *request) error {
	if r.route.past || r.route.write || r.audience == checkers || r.audience == hooks || !r.namesMoment() {
		return nil
	}
	var p problems
	p.add("asOf", "means nothing here: it is taken by GET %s", strings.Join(a.table.past, ", "))
	return p.err()
}

// asOf reads ?asOf=: a time, or a cursor of the account's events; nil is now, or
// something that is wrong.
func (a *API) asOf(r *request, p *problems) (*asked, error) {
	q := r.query(p)
	text := q.text("asOf")
	if text == "" {
		return nil, nil //nolint:nilnil // none was asked for
	}
	// What had become of jobs the feed tells. One that is behind would tell it wrongly.
	short, cancel := context.WithTimeout(r.Context(), visibleWithin)
	defer cancel()
	if err := a.feedShown(short); err != nil {
		return nil, domain.Unavailable(fmt.Errorf("the feed of events is behind: %w", err))
	}
	if cursorForm.MatchString(text) {
		at := asked{echo: text}
		if n, _ := fmt.Sscanf(text, "%d-%d", &at.Position.Commit, &at.Position.Prepare); n < 2 || at.Position == (domain.Position{}) {
			p.add("asOf", "must be a time, or the cursor of an event")
			return nil, nil //nolint:nilnil // it is told
		}
		head, err := a.head(r.Context())
		if err != nil {
			return nil, err
		}
		if at.Position.Compare(head) > 0 {
			p.add("asOf", "must not lie ahead of the log")
			return nil, nil //nolint:nilnil // it is told
		}
		return &at, nil
	}
	moment := q.time("asOf")
	if moment == nil {
		return nil, nil //nolint:nilnil // it is told
	}
	now, err := a.accountTime(r.Context(), r)
	if err != nil {
		return nil, err
	}
	if moment.After(now) {
		p.add("asOf", "must not lie ahead of the account's time, %s", now.UTC().Format(timestampLayout))
		return nil, nil //nolint:nilnil // it is told
	}
	// Answers show milliseconds: one that they show is whole.
	whole := moment.Truncate(time.Millisecond).Add(time.Millisecond - time.Nanosecond)
	return &asked{Until: events.Until{Moment: whole}, echo: moment.UTC().Format(timestampLayout)}, nil
}

// accountTime is the time of the caller's account.
func (a *API) accountTime(ctx context.Context, r *request) (time.Time, error) {
	return a.commands.AccountTime(ctx, command.Cause{AccountID: r.caller.accountID, Sandbox: r.caller.sandbox})
}

// then echoes where an answer looks back to; nothing for now.
func (at *asked) then() *string {
	if at == nil {
		return nil
	}
	return &at.echo
}

// orNotThen tells what is not there from what was not there yet.
func (at *asked) orNotThen(what string, err error) error {
	if at != nil && domain.IsKind(err, domain.KindNotFound) {
		return domain.NotFound(what).WithHint("there was none yet at %s", at.echo)
	}
	return err
}
