package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/fold"
	"humanqa/projections/auditlog"
)

type replayCmd struct {
	Stream   string `arg:"" optional:"" help:"Such as job-<id>, credits-<account id>, project-<id>."`
	Account  string `help:"Instead of a stream: an account's streams of a category, in the log's order." placeholder:"ID"`
	Category string `enum:"credits,job" default:"job" help:"With --account: credits or job."`
	Until    string `help:"Stop behind this time (ISO 8601) or position (42, or 42/42)." placeholder:"T|POSITION"`
	State    bool   `help:"Show the stream's state after each event, too."`
	Format   string `enum:"text,json" default:"text" help:"text or json; json is one object a line."`
}

// replayed is one line of the JSON form.
type replayed struct {
	Stream   string          `json:"stream"`
	Revision uint64          `json:"revision"`
	Position string          `json:"position"`
	ID       uuid.UUID       `json:"id"`
	Type     string          `json:"type"`
	Meta     json.RawMessage `json:"meta"`
	Data     json.RawMessage `json:"data"`
	State    json.RawMessage `json:"state,omitempty"`

	at time.Time
}

// before says that a replay ends before the first event, which this is.
func (l replayed) before(until string) error {
	return &domain.Error{
		Kind: domain.KindNotFound, Code: domain.CodeNotFound,
		Message: fmt.Sprintf("%s lies before the first event", until),
		Hint:    fmt.Sprintf("%s begins at position %s, at %s", l.Stream, l.Position, moment(l.at)),
	}
}

// moment writes a time to the millisecond; the zero time is none.
func moment(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Validate is called by kong.
func (c *replayCmd) Validate() error {
	if (c.Stream == "") == (c.Account == "") {
		return errors.New("name one stream, or --account and --category")
	}
	_, err := parseUntil(c.Until)
	return err
}

// until is where a replay stops.
type until struct {
	position domain.Position
	moment   time.Time
}

func parseUntil(text string) (u until, err error) {
	if text == "" {
		return u, nil
	}
	commit, prepare, both := strings.Cut(strings.ReplaceAll(text, "-", "/"), "/")
	if !both {
		prepare = commit
	}
	if n, scanErr := fmt.Sscanf(commit+" "+prepare, "%d %d", &u.position.Commit, &u.position.Prepare); n == 2 && scanErr == nil &&
		u.position.String() == commit+"/"+prepare {
		return u, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if u.moment, err = time.Parse(layout, text); err == nil {
			return until{moment: u.moment}, nil
		}
	}
	return until{}, fmt.Errorf("--until %q is neither a time (2026-11-21T14:05:00Z) nor a position (42, or 42/42)", text)
}

func (u until) passed(e eventstore.RawEvent, at time.Time) bool {
	if !u.moment.IsZero() {
		return at.After(u.moment)
	}
	return u.position != domain.Position{} && e.Position.Compare(u.position) > 0
}

// errEnough ends a read of the log that needs no further event.
var errEnough = errors.New("enough")

func (c *replayCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	stop, err := parseUntil(c.Until)
	if err != nil {
		return err
	}
	events := 0
	var beyond *replayed // the first event that is not told of
	folds := map[string]*fold.Fold{}
	tell := func(e eventstore.RawEvent) error {
		var meta domain.Metadata
		_ = json.Unmarshal(e.Meta, &meta) // metadata that cannot be read have no time and no actor
		if stop.passed(e, meta.Time) {
			if beyond == nil {
				beyond = &replayed{Stream: e.Stream, Position: e.Position.String(), at: meta.Time}
			}
			if c.Account != "" && !stop.moment.IsZero() {
				return nil // another stream may have an earlier one behind it
			}
			return errEnough
		}
		events++
		line := replayed{
			Stream: e.Stream, Revision: e.Revision, Position: e.Position.String(),
			ID: e.ID, Type: e.Type, Meta: e.Meta, Data: eventstore.Redact(e.Type, e.Whole()),
		}
		if e.Unreadable() != nil {
			line.Data = e.Data // the log shows what it is
		} else if c.State {
			if folds[e.Stream] == nil {
				folds[e.Stream] = fold.New(e.Stream)
			}
			if line.State, err = folds[e.Stream].After(e); err != nil {
				return err
			}
		}
		if a.json || c.Format == "json" {
			return json.NewEncoder(a.out).Encode(line)
		}
		_, err := fmt.Fprintln(a.out, line.text(meta, c.Account != ""))
		return err
	}
	if c.Account != "" {
		err = auditlog.Each(ctx, core.Log, ofAccount(c.Account, c.Category, tell))
	} else {
		err = core.Log.ReadRaw(ctx, c.Stream, tell)
	}
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case events > 0:
		return nil
	case beyond != nil:
		return beyond.before(c.Until)
	case c.Account != "":
		return domain.NotFound(c.Category + " streams of account " + c.Account).WithHint("humanqa account list shows the accounts")
	}
	return domain.NotFound("stream " + c.Stream).WithHint(
		"a stream's name begins with its category, such as job-<id> or credits-<account id>")
}

// ofAccount passes on the events of an account's streams of a category. A job's first
// event names its account.
func ofAccount(accountID, category string, tell func(eventstore.RawEvent) error) func(eventstore.RawEvent) error {
	owned := map[string]bool{domain.CreditsStream(accountID): category == "credits"}
	return func(e eventstore.RawEvent) error {
		if category == "job" && e.Revision == 0 && strings.HasPrefix(e.Stream, domain.JobStreams) {
			var first struct{ AccountID string }
			if err := json.Unmarshal(e.Whole(), &first); err != nil && e.Unreadable() == nil {
				return fmt.Errorf("the account of %s: %w", e.Stream, err)
			}
			owned[e.Stream] = first.AccountID == accountID
		}
		if !owned[e.Stream] {
			return nil
		}
		return tell(e)
	}
}

// text shows position, time, the event's id, the actor, and the change in the event's own
// words. With several streams it also shows the stream.
func (l replayed) text(meta domain.Metadata, several bool) string {
	who, stream := "-", ""
	if !meta.Time.IsZero() {
		who = meta.Actor
	}
	if several {
		stream = l.Stream + "  "
	}
	line := fmt.Sprintf("%4d  %9s  %s  %s  %-20s  %s%-24s %s", l.Revision, l.Position, moment(meta.Time), l.ID, who, stream, l.Type, l.Data)
	if l.State != nil {
		line += fmt.Sprintf("\n      state  %s", l.State)
	}
	return line
}
