package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/google/uuid"

	"humanqa"
	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/httpapi/ui"
	"humanqa/projections/overall"
)

const (
	// eventsShown bounds the events on a page of a stream.
	eventsShown = 50
	// dataShown bounds the data of an event that is shown, in characters.
	dataShown = 20_000
)

type streamsView struct {
	Text  string
	Found []foundStream
}

type foundStream struct{ Stream, Href, First string }

// streamName matches the names of the service's streams.
var streamName = regexp.MustCompile(`^[a-z]+-[A-Za-z0-9.:_-]{1,200}$`)

// streams finds streams by the id of their subject, or by their name.
func (d Deps) streams(r *ui.Request) (ui.Answer, error) {
	v := streamsView{Text: textOf(r)}
	var names []string
	if id, err := uuid.Parse(v.Text); err == nil {
		for _, category := range []string{
			domain.JobStreams, domain.AccountStreams, domain.CreditsStreams, domain.SessionStreams, domain.ProjectStreams,
			domain.CheckerStreams,
			domain.PersonStreams, domain.LoopStreams, domain.PoolStreams, domain.OperatorStreams, domain.HostStreams,
		} {
			names = append(names, category+id.String())
		}
	} else if streamName.MatchString(v.Text) {
		names = append(names, v.Text)
	}
	for _, name := range names {
		first, found, err := d.firstOf(r.Context(), name)
		if err != nil {
			return ui.Answer{}, err
		}
		if found {
			v.Found = append(v.Found, foundStream{name, streamHref(name), first.kind})
		}
	}
	return ui.Show("console-streams", "Streams", v), nil
}

// streamHref is the page of a stream; empty where the name is none.
func streamHref(stream string) string {
	if !streamName.MatchString(stream) {
		return ""
	}
	return "/console/streams/" + url.PathEscape(stream)
}

// first is the type of a stream's first event, and the stream's account.
type first struct{ kind, accountID string }

var errEnough = errors.New("enough")

// firstOf reads the beginning of a stream: its first events name its account.
func (d Deps) firstOf(ctx context.Context, stream string) (f first, found bool, err error) {
	if !streamName.MatchString(stream) {
		return f, false, nil
	}
	err = d.Log.ReadRawPage(ctx, stream, 0, 5, func(e eventstore.RawEvent) error {
		var meta domain.Metadata
		_ = json.Unmarshal(e.Meta, &meta) // unreadable metadata names no account
		if !found {
			f.kind, found = e.Type, true
		}
		if f.accountID == "" {
			f.accountID = meta.AccountID
		}
		return nil
	})
	return f, found, err
}

type streamView struct {
	lookView
	Stream       string
	Account      string
	Events       []eventLine
	From         uint64
	Newer, Older string
}

type eventLine struct {
	Revision      uint64
	Type, Meaning string
	At            time.Time
	Actor         string
	ID            string
	Position      string
	Correlation   string
	Data          string // with [sealed] where a secret was; empty: it is not shown
	Cut           bool   // there is more
}

func (d Deps) streamPage(r *ui.Request) (ui.Answer, error) {
	ctx, stream := r.Context(), r.PathValue("stream")
	begins, found, err := d.firstOf(ctx, stream)
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !found:
		return ui.Answer{}, domain.NotFound("stream").WithHint("search for the id of a job, an account or a person")
	}
	v := streamView{Stream: stream}
	if v.lookView, err = d.lookInto(r, stream, begins.accountID); err != nil {
		return ui.Answer{}, err
	}
	if v.Account, err = d.Reads.Overall.Name(ctx, overall.Accounts, begins.accountID); err != nil {
		return ui.Answer{}, err
	}
	if n, err := strconv.ParseUint(r.FormValue("from"), 10, 62); err == nil {
		v.From = n
	}
	more := false
	err = d.Log.ReadRawPage(ctx, stream, v.From, eventsShown+1, func(e eventstore.RawEvent) error {
		if len(v.Events) == eventsShown {
			more = true
			return errEnough
		}
		v.Events = append(v.Events, lineOf(e, v.Open))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return ui.Answer{}, err
	}
	at := func(from uint64) string { return streamHref(stream) + "?from=" + strconv.FormatUint(from, 10) }
	if v.From > 0 {
		v.Older = at(v.From - min(v.From, eventsShown))
	}
	if more {
		v.Newer = at(v.From + eventsShown)
	}
	return ui.Answer{Template: "console-stream", Title: stream, View: v, Secret: v.Private && v.Open}, nil
}

// lineOf is an event as the page shows it; data says that its data may be shown.
func lineOf(e eventstore.RawEvent, data bool) eventLine {
	var meta domain.Metadata
	_ = json.Unmarshal(e.Meta, &meta) // unreadable metadata has no actor
	l := eventLine{
		Revision: e.Revision, Type: e.Type, Meaning: humanqa.EventMeanings()[e.Type], At: e.Created.UTC(),
		Actor: meta.Actor, ID: e.ID.String(), Position: e.Position.String(), Correlation: meta.CorrelationID,
	}
	if !data {
		return l
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, eventstore.Redact(e.Type, e.Whole()), "", "  ") != nil {
		return l // never happens: redacted data is JSON
	}
	text := []rune(pretty.String())
	l.Data, l.Cut = string(text[:min(len(text), dataShown)]), len(text) > dataShown
	return l
}
