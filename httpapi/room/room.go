// Package room is the page of a session: the lobby with its next step, the progress of
// every slot, the marked moments, and afterwards one timeline.
//
// A room has two doors. The people of the account watch at /dashboard/sessions/:id.
// Checkers with a slot take part at /workbench/sessions/:id. Both see the same room,
// and no person's identity: a checker appears as the label of their slot, and a viewer
// as the client. Only the client sees the price.
package room

import (
	"embed"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/ui"
	"humanqa/internal/voice"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/projections/sessions"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages. All fields but Voice are required.
type Deps struct {
	Commands *command.Service
	Reads    *projections.Reads
	Evidence *evidence.Service
	Changes  *changes.Changes
	Voice    *voice.Server // nil: there is none
	Now      func() time.Time
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	const watch, work = "/dashboard/sessions/{id}", "/workbench/sessions/{id}"
	const marked = "The moment is marked."
	aWatcher, aWorker := ui.With(d.watcher), ui.With(d.worker)
	return []ui.Page{
		{Method: "GET", Pattern: watch, For: ui.Viewers, Handle: aWatcher(d.show)},
		{Method: "POST", Pattern: watch + "/marks", For: ui.Developers, Says: marked, Handle: aWatcher(d.mark)},
		{Method: "GET", Pattern: watch + "/voice", For: ui.Viewers, Takes: true, Handle: d.talk(ui.Viewers, d.watcher)},
		{Method: "GET", Pattern: watch + "/films/{film}", For: ui.Viewers, Handle: aWatcher(d.film)},

		{Method: "GET", Pattern: work, For: ui.Checkers, Handle: aWorker(d.show)},
		{Method: "POST", Pattern: work + "/marks", For: ui.Checkers, Says: marked, Handle: aWorker(d.mark)},
		{Method: "POST", Pattern: work + "/ready", For: ui.Checkers, Says: "You are ready.", Handle: aWorker(d.ready)},
		{Method: "POST", Pattern: work + "/leave", For: ui.Checkers, Says: "You left the session.", Handle: aWorker(d.leave)},
		{Method: "GET", Pattern: work + "/voice", For: ui.Checkers, Takes: true, Handle: d.talk(ui.Checkers, d.worker)},

		{Method: "POST", Pattern: watch + "/cancel", For: ui.Developers, Says: "The session is cancelled.",
			Handle: aWatcher(d.cancel)},
	}
}

// seat is the session as one person in it sees it.
type seat struct {
	sessions.Session
	Path string // of the room, by their door
	// checker is empty for a person who watches.
	checker string
	Own     sessions.Slot // the checker's
	MayMark bool
	now     time.Time // the account's
}

// Watches says that the person is no checker.
func (s seat) Watches() bool { return s.checker == "" }

// watcher seats a person of the account.
func (d Deps) watcher(r *ui.Request) (seat, error) {
	s, err := ui.Find(r, "session", d.Reads.Sessions.Session)
	if err != nil {
		return seat{}, err
	}
	now, err := d.Commands.AccountTime(r.Context(), command.Cause{AccountID: r.Account.ID, Sandbox: r.Account.Sandbox})
	open := s.ClosedAt == nil
	return seat{Session: s, Path: "/dashboard/sessions/" + s.ID, MayMark: open && r.May(person.Developer), now: now}, err
}

// worker seats a checker who has a slot in the session.
func (d Deps) worker(r *ui.Request) (seat, error) {
	id, checker := r.PathValue("id"), r.Person.CheckerID()
	if _, err := uuid.Parse(id); err != nil {
		return seat{}, domain.NotFound("session")
	}
	place, err := d.Reads.Jobs.PlaceIn(r.Context(), checker, id)
	if err != nil {
		return seat{}, err
	}
	s, err := d.Reads.Sessions.Session(r.Context(), place.AccountID, id)
	if err != nil {
		return seat{}, err
	}
	out := seat{Session: s, Path: "/workbench/sessions/" + id, checker: checker, now: d.Now()}
	for _, slot := range s.Slots {
		if slot.JobID == place.JobID {
			out.Own = slot
		}
	}
	out.MayMark = s.ClosedAt == nil && out.Own.Status != sessions.SlotDropped
	return out, nil
}
