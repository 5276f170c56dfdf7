// Package events is the read model of the feed of announced events.
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Projector keeps the events that webhooks announce, account by account,
// and what announcements say beside them. Sealed secrets stay in the log.
type Projector struct{}

// Name is the projection's.
const Name = "events"

func (Projector) Name() string { return Name }
func (Projector) Version() int { return announce.Revision + layout }

// layout is the tables'. Raise it when they change.
const layout = 2

// Gather implements consumer.Lazy: writes don't wait for the feed, who reads it
// does (Supervisor.CatchUp).
func (Projector) Gather() time.Duration { return 100 * time.Millisecond }

func (Projector) Tables() []consumer.Table {
	return []consumer.Table{
		{Name: "event_streams", DDL: eventStreamsDDL},
		{Name: "account_events", DDL: accountEventsDDL},
	}
}

// about is an announce.Enrichment, but for whose it is. Most are learned from once, and in place: what an
// earlier row of the page leaves behind has room for the next.
const eventStreamsDDL = `
CREATE TABLE {schema}.event_streams (
    stream     text PRIMARY KEY,
    account_id text NOT NULL,
    project_id text NOT NULL,
    about      jsonb NOT NULL
) WITH (fillfactor = 90);
`

// noticed are the events that people are told of when they come back.
const noticed = `type IN ('job.failed_sla', 'job.failed', 'loop_session.ended', 'project.webhook_disabled', 'credits.debited')`

// data is what of the event is told, as the log would store it today. What has a fixed
// width comes first, where nothing has to be aligned. Indexes hold hashes of accounts
// and streams, whose names are four times as wide as what is beside them; a query asks
// for both. A stream's holds no positions: equal keys share an entry, and a job's events
// are few enough to be sorted.
const accountEventsDDL = `
CREATE TABLE {schema}.account_events (
    commit_position  bigint NOT NULL,
    prepare_position bigint NOT NULL,
    revision         bigint NOT NULL,
    time             timestamptz NOT NULL,
    schema_version   integer NOT NULL,
    event_id         uuid NOT NULL,
    account_id       text NOT NULL,
    stream           text NOT NULL,
    type             text NOT NULL,
    data             text NOT NULL,
    PRIMARY KEY (commit_position, prepare_position)
);
CREATE INDEX account_events_in_order  ON {schema}.account_events (hashtext(account_id), commit_position, prepare_position);
CREATE INDEX account_events_noticed   ON {schema}.account_events (account_id, commit_position DESC, prepare_position DESC) WHERE ` + noticed + `;
CREATE INDEX account_events_by_stream ON {schema}.account_events (hashtext(stream));
`

func (Projector) Handles() []string { return announce.Types() }

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

var loadEventStreamsSQL = readmodel.Load[eventStreamRow]("event_streams", "stream")

var writeEventStreamsSQL = readmodel.Insert("event_streams") + `
ON CONFLICT (stream) DO UPDATE
SET about = EXCLUDED.about`

// Apply writes a row per announced event. One whose stream does not begin as it
// should, because an operator skipped that, is passed over.
func (Projector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
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
		about, begins := announce.Begin(r)
		switch {
		case begins && s == nil:
			s = &eventStream{row: eventStreamRow{Stream: r.Stream, AccountID: about.AccountID, ProjectID: about.ProjectID}}
			streams[r.Stream] = s
		case s == nil:
			continue
		}
		if begins {
			s.about = about
		}
		if learned := begins || s.about.Learn(r.Event); learned && !s.dirty {
			s.dirty = true
			changed = append(changed, s)
		}
		if _, announced := announce.Of(r.Event); !announced {
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
		about := s.about
		about.AccountID, about.ProjectID = "", ""
		if s.row.About, err = json.Marshal(about); err != nil {
			return fmt.Errorf("encode what %s is about: %w", s.row.Stream, err)
		}
		learned[i] = s.row
	}
	if err := readmodel.Write(ctx, tx, schema, writeEventStreamsSQL, learned); err != nil {
		return fmt.Errorf("write streams: %w", err)
	}
	if err := readmodel.Append(ctx, tx, schema, "account_events", rows); err != nil {
		return fmt.Errorf("insert events: %w", err)
	}
	return nil
}

// eventStream is what is known of a job, a session or a loop.
type eventStream struct {
	row   eventStreamRow
	about announce.Enrichment
	dirty bool // to be written
}

func loadStreams(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) (_ map[string]*eventStream, err error) {
	var names []string
	streams := map[string]*eventStream{}
	for _, r := range batch {
		if _, asked := streams[r.Stream]; !asked {
			streams[r.Stream] = nil
			if _, begins := announce.Begin(r); !begins {
				names = append(names, r.Stream)
			}
		}
	}
	// A loop's stream begins anew with each of its sessions.
	var rows []eventStreamRow
	if err := readmodel.SelectAny(ctx, tx, schema, loadEventStreamsSQL, &rows, names); err != nil {
		return nil, fmt.Errorf("load streams: %w", err)
	}
	for _, row := range rows {
		s := &eventStream{row: row}
		if s.about, err = aboutOf(row.Stream, row.About, row.AccountID, row.ProjectID); err != nil {
			return nil, err
		}
		streams[row.Stream] = s
	}
	return streams, nil
}

// aboutOf reads what Apply wrote.
func aboutOf(stream string, text json.RawMessage, accountID, projectID string) (about announce.Enrichment, err error) {
	if err := json.Unmarshal(text, &about); err != nil {
		return about, fmt.Errorf("decode what %s is about: %w", stream, err)
	}
	about.AccountID, about.ProjectID = accountID, projectID
	return about, nil
}

func accountEvent(accountID string, r domain.Recorded) (accountEventRow, error) {
	data, _, err := eventstore.Encode(domain.NewEvent{Event: announce.Told(r.Event)})
	if err != nil {
		return accountEventRow{}, err
	}
	return accountEventRow{
		CommitPosition: r.Position.Commit, PreparePosition: r.Position.Prepare,
		AccountID: accountID, Stream: r.Stream, Revision: r.Revision, EventID: r.ID.String(),
		Type: r.Type, SchemaVersion: eventstore.Version(r.Type), Time: readmodel.Moment(r.Meta.Time), Data: string(data),
	}, nil
}
