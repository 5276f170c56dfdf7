-- +goose Up

SET LOCAL lock_timeout = '1s';

-- The readers of the feed of events that gave a name. A place is in the log, so a move to
-- a copy of the log takes it along (eventstore/binding). -1: before the first event.
CREATE TABLE event_readers (
    account_id       text NOT NULL,
    project_id       text NOT NULL, -- of a project-bound key; empty: the whole account
    name             text NOT NULL,
    commit_position  bigint NOT NULL DEFAULT -1,
    prepare_position bigint NOT NULL DEFAULT -1,
    types            text[] NOT NULL DEFAULT '{}', -- that it asks for; empty: all
    refused          text NOT NULL DEFAULT '',     -- why its cursor was not taken
    first_seen_at    timestamptz NOT NULL,
    last_seen_at     timestamptz NOT NULL,
    PRIMARY KEY (account_id, project_id, name)
);

-- +goose Down

DROP TABLE event_readers;
