// Package events is the read model of the feed of announced events.
package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/announce"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// Projector keeps the events that webhooks announce, by account, with their enrichments.
// Sealed secrets stay in the log.
type Projector struct{}

// Name is the projection's.
const Name = "events"

func (Projector) Name() string { return Name }
func (Projector) Version() int { return announce.Revision() + layout }

// layout is the tables'. Raise it when they change.
const layout = 8

// Gather implements consumer.Lazy: writes don't wait for the feed, its readers
// do (Supervisor.CatchUp).
func (Projector) Gather() time.Duration { return 250 * time.Millisecond }

// Announces implements consumer.Announcer: the streams of events read these rows.
func (Projector) Announces() {}

// InOrder implements consumer.InOrder: a reader past a place in the feed would miss an
// event that came there later.
func (Projector) InOrder(string) bool { return true }

func (Projector) Tables() []consumer.Table {
	return []consumer.Table{
		{Name: "event_streams", DDL: eventStreamsDDL, Indexes: eventStreamsIndexes},
		{Name: "account_events", DDL: accountEventsDDL, Indexes: accountEventsIndexes},
	}
}

// about is an announce.Enrichment. Most enrichments are updated once, and in place: an
// earlier row of the page leaves room for the new one. position is the place in the log
// where the stream begins.
const eventStreamsDDL = `
CREATE TABLE {schema}.event_streams (
    position   bigint NOT NULL,
    stream     text PRIMARY KEY,
    account_id text NOT NULL,
    project_id text NOT NULL,
    about      jsonb NOT NULL
) WITH (fillfactor = 90);
`

const eventStreamsIndexes = `
REINDEX TABLE {schema}.event_streams;
CREATE UNIQUE INDEX event_streams_in_order ON {schema}.event_streams (account_id, position);
`

// data is announce.Told of the event.
const accountEventsDDL = `
CREATE TABLE {schema}.account_events (
    commit_position  bigint NOT NULL,
    prepare_position bigint NOT NULL,
    time             timestamptz NOT NULL,
    event_id         uuid NOT NULL,
    account_id       text NOT NULL,
    stream           text NOT NULL,
    revision         integer NOT NULL,
    schema_version   smallint NOT NULL,
    type             text NOT NULL,
    data             jsonb NOT NULL
);
`

// A stream's index holds no positions of events: equal keys share an entry, and a job's
// events are few enough to be sorted.
var accountEventsIndexes = `
ALTER TABLE {schema}.account_events ADD PRIMARY KEY (commit_position, prepare_position);
CREATE INDEX account_events_in_order  ON {schema}.account_events (account_id, commit_position, prepare_position);
CREATE INDEX account_events_noticed   ON {schema}.account_events (account_id, commit_position DESC, prepare_position DESC) WHERE ` +
	noticed + `;
CREATE INDEX account_events_refused   ON {schema}.account_events (account_id, commit_position DESC, prepare_position DESC) WHERE ` +
	refused + `;
CREATE INDEX account_events_by_stream ON {schema}.account_events (stream);
`

// noticed are the events that the pages show people when they come back.
var noticed = "type IN ('" + strings.Join(
	domain.TypesOf((*job.SLAMissed)(nil), (*job.Failed)(nil), (*loop.Ended)(nil), (*project.WebhookDisabled)(nil), (*credits.Debited)(nil)),
	"', '") + "')"

// refused are the events that tell of refused tests. One may come every minute, so they are
// not among the others that are noticed.
var refused = "type = '" + (*account.SubmissionsRefused)(nil).EventType() + "'"

func (Projector) Handles() []string {
	return append(announce.Types(), domain.TypesOf((*job.Erased)(nil), (*account.Erased)(nil))...)
}

type eventStreamRow struct {
	Position  uint64                              `json:"position"`
	Stream    string                              `json:"stream"`
	AccountID string                              `json:"account_id"`
	ProjectID string                              `json:"project_id"`
	About     readmodel.JSON[announce.Enrichment] `json:"about"`
}

type accountEventRow struct {
	CommitPosition  uint64          `json:"commit_position"`
	PreparePosition uint64          `json:"prepare_position"`
	Time            time.Time       `json:"time"`
	EventID         string          `json:"event_id"`
	AccountID       string          `json:"account_id"`
	Stream          string          `json:"stream"`
	Revision        uint64          `json:"revision"`
	SchemaVersion   int             `json:"schema_version"`
	Type            string          `json:"type"`
	Data            json.RawMessage `json:"data"`
}

// Apply writes a row per announced event. It skips the events of a stream without its
// first event, which an operator skipped.
func (Projector) Apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	streams, err := loadStreams(ctx, tx, schema, batch)
	if err != nil {
		return err
	}
	var (
		changed []*eventStream
		rows    []accountEventRow
		erased  []string // streams
	)
	for _, r := range batch {
		s := streams[r.Stream]
		about, begins := announce.Begin(r)
		switch {
		case begins && s == nil:
			s = &eventStream{isNew: true, row: eventStreamRow{Position: r.Position.Commit, Stream: r.Stream, AccountID: about.AccountID,
				ProjectID: about.ProjectID}}
			streams[r.Stream] = s
		case s == nil:
			continue
		}
		if begins {
			s.row.About.V = about
		}
		erases := r.Type == (*job.Erased)(nil).EventType() || r.Type == (*account.Erased)(nil).EventType()
		if erases {
			erased = append(erased, r.Stream)
			s.row.About.V.Submission = domain.WithoutTexts(s.row.About.V.Submission)
		}
		if learned := erases || begins || s.row.About.V.Learn(r.Event); learned && !s.dirty {
			s.dirty = true
			changed = append(changed, s)
		}
		if _, announced := announce.Of(r.Event); erases || !announced {
			continue
		}
		row, err := accountEvent(s.row, r)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	var begun, learned []eventStreamRow
	for _, s := range changed {
		if s.isNew {
			begun = append(begun, s.row)
		} else {
			learned = append(learned, s.row)
		}
	}
	err = readmodel.Run(ctx, tx, schema,
		readmodel.Append("event_streams", begun),
		readmodel.Update("event_streams", "stream", learned, "about"),
		readmodel.Append("account_events", rows),
	)
	if err != nil {
		return err
	}
	return eraseStreams(ctx, tx, schema, erased)
}

const eraseEventsSQL = `
UPDATE {schema}.account_events e
SET data = r.data
FROM json_populate_recordset(NULL::{schema}.account_events, $1) r
WHERE e.commit_position = r.commit_position
  AND e.prepare_position = r.prepare_position`

// eraseStreams erases the texts of the streams' events. The rows are then as the log's
// events are read without the key of their texts.
func eraseStreams(ctx context.Context, tx *sqlx.Tx, schema string, streams []string) error {
	rows, err := readmodel.Load[accountEventRow](ctx, tx, schema, "account_events", "stream", streams)
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Data = eventstore.EraseTexts(rows[i].Type, rows[i].Data)
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Write("erase events", eraseEventsSQL, rows))
}

// eventStream is the row of a job, a session, a loop or another announced stream.
type eventStream struct {
	row   eventStreamRow
	isNew bool // of this batch
	dirty bool // to be written
}

func loadStreams(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) (map[string]*eventStream, error) {
	var names []string
	streams := map[string]*eventStream{}
	for _, r := range batch {
		if _, asked := streams[r.Stream]; !asked {
			streams[r.Stream] = nil
			if _, begins := announce.Begin(r); !begins || r.Revision > 0 { // a loop's stream begins anew with each of its sessions
				names = append(names, r.Stream)
			}
		}
	}
	rows, err := readmodel.Load[eventStreamRow](ctx, tx, schema, "event_streams", "stream", names)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		streams[row.Stream] = &eventStream{row: row}
	}
	return streams, nil
}

func accountEvent(of eventStreamRow, r domain.Recorded) (accountEventRow, error) {
	data, err := json.Marshal(announce.Told(r.Event))
	if err != nil {
		return accountEventRow{}, fmt.Errorf("encode event %s: %w", r.ID, err)
	}
	return accountEventRow{
		CommitPosition: r.Position.Commit, PreparePosition: r.Position.Prepare, AccountID: of.AccountID, Stream: of.Stream,
		Revision: r.Revision, EventID: r.ID.String(), Type: r.Type, SchemaVersion: eventstore.Version(r.Type),
		Time: readmodel.Moment(r.Meta.Time), Data: data,
	}, nil
}
