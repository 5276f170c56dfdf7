package v1

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/wire"
	"humanqa/projections/events"
)

// noteRefused notes why a reader cannot continue, and returns the error.
func (a *Handlers) noteRefused(id readers.ID, f events.Filter, err error) error {
	if refused, ok := errors.AsType[*domain.Error](err); ok {
		switch refused.Code {
		case domain.CodeCursorAhead, domain.CodeCursorGone, domain.CodeAnotherLog:
			a.Readers.Note(readers.Note{ID: id, Types: f.Types, Refused: refused.Code})
		}
	}
	return err
}

type readerList struct {
	Log     *string    `json:"log"` // as in X-Service-Log
	Readers []readerAs `json:"readers"`
}

// readerAs is a named reader of the feed.
type readerAs struct {
	Name         string        `json:"name"`
	ProjectID    *string       `json:"projectId"` // of a project-bound key
	State        readers.State `json:"state"`
	Refused      *string       `json:"refused"`
	Cursor       *string       `json:"cursor"` // null before the first event
	Types        []string      `json:"types"`  // empty: all
	EventsBehind int           `json:"eventsBehind"`
	More         bool          `json:"more"` // there are events beyond those that were counted
	LagSeconds   int64         `json:"lagSeconds"`
	FirstSeenAt  string        `json:"firstSeenAt"`
	LastSeenAt   string        `json:"lastSeenAt"`
}

// listReaders is GET /v1/events/readers.
func (a *Handlers) listReaders(r *wire.Request) (wire.Answer, error) {
	now, err := a.accountTime(r.Context(), r)
	if err != nil {
		return wire.Answer{}, err
	}
	a.Fresh.Feed(r.Context(), r.Log) // so that the list counts everything that earlier answers showed
	found, err := a.Readers.Of(r.Context(), r.Caller.AccountID, r.Caller.ProjectID)
	return wire.ReplyUnless(err, http.StatusOK, readerList{
		Log: wire.OrNull(a.cursors.Log()), Readers: wire.List(found, func(one readers.Reader) readerAs { return a.readerAs(one, now) }),
	})
}

func (a *Handlers) readerAs(one readers.Reader, now time.Time) readerAs {
	types := []string{}
	for name, logged := range announcedTypes {
		if slices.Contains(one.Types, logged) {
			types = append(types, name)
		}
	}
	slices.Sort(types)
	return readerAs{
		Name: one.Name, ProjectID: wire.OrNull(one.ProjectID), State: one.State(now), Cursor: wire.OrNull(a.cursors.Tell(one.Cursor)),
		Refused: wire.OrNull(string(one.Refused)), Types: types,
		EventsBehind: one.EventsBehind, More: one.More, LagSeconds: int64(one.Lag(now).Seconds()),
		FirstSeenAt: one.FirstSeenAt.Format(wire.TimestampLayout), LastSeenAt: one.LastSeenAt.Format(wire.TimestampLayout),
	}
}

type forgottenReader struct {
	Forgotten string `json:"forgotten"`
}

// forgetReader is POST /v1/events/readers/:name/forget.
func (a *Handlers) forgetReader(r *wire.Request) (wire.Answer, error) {
	name := r.Vars["name"]
	err := a.Readers.Forget(r.Context(), r.Caller.AccountID, r.Caller.ProjectID, name)
	return wire.ReplyUnless(err, http.StatusOK, forgottenReader{name})
}
