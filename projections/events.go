package projections

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/session"
	"humanqa/eventstore"
)

// eventsProjector keeps the events that webhooks announce, account by account,
// and what announcements say beside them. Sealed secrets stay in the log.
type eventsProjector struct{}

func (eventsProjector) Name() string { return "events" }
func (eventsProjector) Version() int { return 1 }

// Patience implements Patient: a feed may be a moment behind.
func (eventsProjector) Patience() time.Duration { return 100 * time.Millisecond }

func (eventsProjector) Tables() []Table {
	return []Table{
		{Name: "event_streams", DDL: eventStreamsDDL},
		{Name: "account_events", DDL: accountEventsDDL},
	}
}

// about is an EventSubject.
const eventStreamsDDL = `
CREATE TABLE {schema}.event_streams (
    stream     text PRIMARY KEY,
    account_id text NOT NULL,
    project_id text NOT NULL,
    about      jsonb NOT NULL
) WITH (fillfactor = 70);
`

// data is the event as the log would store it today.
const accountEventsDDL = `
CREATE TABLE {schema}.account_events (
    commit_position  bigint NOT NULL,
    prepare_position bigint NOT NULL,
    account_id       text NOT NULL,
    stream           text NOT NULL,
    revision         bigint NOT NULL,
    event_id         uuid NOT NULL,
    type             text NOT NULL,
    schema_version   integer NOT NULL,
    time             timestamptz NOT NULL,
    data             text NOT NULL,
    PRIMARY KEY (commit_position, prepare_position)
);
CREATE INDEX account_events_in_order  ON {schema}.account_events (account_id, commit_position, prepare_position);
CREATE INDEX account_events_by_stream ON {schema}.account_events (account_id, stream, commit_position, prepare_position);
`

// AnnouncedEvents lists, with no content, every event that the feed holds.
func AnnouncedEvents() []domain.Event {
	return []domain.Event{
		new(job.Created), new(job.ClaimedBy), new(job.CompletedWith), new(job.AIReportReady),
		new(job.SLAMissed), new(job.FailedBy), new(job.CancelledBy),
		new(session.Started), new(session.CompletedWith),
		&loop.Ended{Alert: true},
	}
}

func (eventsProjector) Handles() []string {
	types := []string{(*session.Created)(nil).EventType(), (*loop.Started)(nil).EventType()}
	for _, e := range AnnouncedEvents() {
		types = append(types, e.EventType())
	}
	return types
}

// EventSubject is what an announcement says beside the event itself: of a job,
// or of a session.
type EventSubject struct {
	URL        string
	Title      string
	Type       job.Type
	TypeEcho   string
	Urgent     bool
	SLAMinutes int
	SessionID  string
	ReportID   string // once there is one

	Slots   []session.Slot
	Dropped []int // the slots that the session started without, once it did
}

type eventStreamRow struct {
	Stream    string          `json:"stream"`
	AccountID string          `json:"account_id"`
	ProjectID string          `json:"project_id"`
	About     json.RawMessage `json:"about"`
}

type accountEventRow struct {
	CommitPosition  uint64    `json:"commit_position"`
	PreparePosition uint64    `json:"prepare_position"`
	AccountID       string    `json:"account_id"`
	Stream          string    `json:"stream"`
	Revision        uint64    `json:"revision"`
	EventID         string    `json:"event_id"`
	Type            string    `json:"type"`
	SchemaVersion   int       `json:"schema_version"`
	Time            time.Time `json:"time"`
	Data            string    `json:"data"`
}

const loadEventStreamsSQL = `
SELECT *
FROM {schema}.event_streams
WHERE stream = ANY($1)`

const writeEventStreamsSQL = `
INSERT INTO {schema}.event_streams
SELECT *
FROM json_populate_recordset(NULL::{schema}.event_streams, $1)
ON CONFLICT (stream) DO UPDATE
SET about = EXCLUDED.about`

const insertAccountEventsSQL = `
INSERT INTO {schema}.account_events
SELECT *
FROM json_populate_recordset(NULL::{schema}.account_events, $1)`

// Apply writes a row per announced event. One whose stream does not begin as it
// should, because an operator skipped that, is passed over.
func (eventsProjector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	streams, err := loadStreams(ctx, tx, schema, batch)
	if err != nil {
		return err
	}
	var (
		changed []*eventStream
		rows    []accountEventRow
	)
	for _, r := range batch {
		s := streams[r.Stream]
		if s == nil {
			if s = streamOf(r); s == nil {
				continue
			}
			streams[r.Stream] = s
		}
		if s.learn(r.Event) && !s.dirty {
			s.dirty = true
			changed = append(changed, s)
		}
		if !announced(r.Event) {
			continue
		}
		row, err := accountEvent(s.row.AccountID, r)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	learned := make([]eventStreamRow, len(changed))
	for i, s := range changed {
		if s.row.About, err = json.Marshal(s.about); err != nil {
			return fmt.Errorf("encode what %s is about: %w", s.row.Stream, err)
		}
		learned[i] = s.row
	}
	if err := writeRows(ctx, tx, schema, writeEventStreamsSQL, learned); err != nil {
		return fmt.Errorf("write streams: %w", err)
	}
	if err := writeRows(ctx, tx, schema, insertAccountEventsSQL, rows); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	return nil
}

func announced(e domain.Event) bool {
	switch e := e.(type) {
	case *session.Created, *loop.Started:
		return false
	case *loop.Ended:
		return e.Alert
	}
	return true
}

// eventStream is what is known of a job, a session or a loop.
type eventStream struct {
	row   eventStreamRow
	about EventSubject
	dirty bool // to be written
}

func loadStreams(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) (map[string]*eventStream, error) {
	var names []string
	streams := map[string]*eventStream{}
	for _, r := range batch {
		if _, asked := streams[r.Stream]; !asked {
			streams[r.Stream] = nil
			if streamOf(r) == nil { // else it begins here
				names = append(names, r.Stream)
			}
		}
	}
	// A loop's stream begins anew with each of its sessions.
	var rows []eventStreamRow
	if err := selectAny(ctx, tx, schema, loadEventStreamsSQL, &rows, names); err != nil {
		return nil, fmt.Errorf("load streams: %w", err)
	}
	for _, row := range rows {
		s := &eventStream{row: row}
		if err := json.Unmarshal(row.About, &s.about); err != nil {
			return nil, fmt.Errorf("decode what %s is about: %w", row.Stream, err)
		}
		streams[row.Stream] = s
	}
	return streams, nil
}

// streamOf gives the stream that an event begins, if it begins one.
func streamOf(r domain.Recorded) *eventStream {
	row := eventStreamRow{Stream: r.Stream}
	switch e := r.Event.(type) {
	case *job.Created:
		row.AccountID, row.ProjectID = e.AccountID, e.ProjectID
	case *session.Created:
		row.AccountID, row.ProjectID = e.AccountID, e.ProjectID
	case *loop.Started:
		row.AccountID, row.ProjectID = e.AccountID, e.ProjectID
	default:
		return nil
	}
	return &eventStream{row: row}
}

// learn folds one event of the stream and says whether it told anything.
func (s *eventStream) learn(e domain.Event) bool {
	switch e := e.(type) {
	case *job.Created:
		s.about = EventSubject{
			URL: e.URL, Title: e.Title, Type: e.Type, TypeEcho: e.TypeEcho,
			Urgent: e.Urgent, SLAMinutes: e.SLAMinutes, SessionID: e.SessionID,
		}
	case *job.CompletedWith:
		s.about.ReportID = e.ReportID
	case *session.Created:
		s.about.Slots = e.Slots
	case *session.Started:
		s.about.Dropped = e.Dropped
	case *loop.Started:
	default:
		return false
	}
	return true
}

func accountEvent(accountID string, r domain.Recorded) (accountEventRow, error) {
	data, _, err := eventstore.Encode(domain.NewEvent{Event: withoutSecrets(r.Event)})
	if err != nil {
		return accountEventRow{}, err
	}
	return accountEventRow{
		CommitPosition: r.Position.Commit, PreparePosition: r.Position.Prepare,
		AccountID: accountID, Stream: r.Stream, Revision: r.Revision, EventID: r.ID.String(),
		Type: r.Type, SchemaVersion: eventstore.Version(r.Type), Time: moment(r.Meta.Time), Data: string(data),
	}, nil
}

// withoutSecrets gives the event without what was sealed.
func withoutSecrets(e domain.Event) domain.Event {
	if submitted, ok := e.(*job.Created); ok {
		c := *submitted
		c.Credentials, c.AccessInstructions = "", ""
		return &c
	}
	return e
}
