-- +goose Up
-- The event log of the embedded node. One writer (whoever holds the session
-- advisory lock) inserts; nothing ever updates or deletes a row.
CREATE SCHEMA eventlog;

CREATE TABLE eventlog.events (
    position bigint PRIMARY KEY,          -- place in $all: 1, 2, 3 … without a hole
    revision bigint NOT NULL,             -- place in the stream, from 0; 2^63-1 is the tombstone
    created  bigint NOT NULL,             -- microseconds since 1970-01-01T00:00:00Z
    event_id uuid NOT NULL,
    is_json  boolean NOT NULL,            -- the only content type the protocol keeps
    stream   text COLLATE "C" NOT NULL,
    type     text COLLATE "C" NOT NULL,
    data     bytea NOT NULL,
    metadata bytea NOT NULL
);

-- Serves stream reads, and is the last line of defence behind the writer's
-- check of expected revisions.
CREATE UNIQUE INDEX events_stream_revision ON eventlog.events (stream, revision);

-- Insert-only: freeze early and in small steps instead of in one late wave.
ALTER TABLE eventlog.events SET (autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_freeze_min_age = 0);

-- +goose Down
DROP SCHEMA eventlog CASCADE;
