-- +goose Up

-- Checks of the invariants that operators started. One runs at a time, over all
-- processes; who runs it says so every second, and one that has been silent is
-- over.
CREATE SCHEMA checkup;

CREATE TABLE checkup.checks (
    id         uuid        PRIMARY KEY,
    person_id  text        NOT NULL, -- who started it
    started_at timestamptz NOT NULL,
    beat_at    timestamptz NOT NULL,
    ended_at   timestamptz,
    state      text        NOT NULL CHECK (state IN ('running', 'done', 'cancelled', 'failed')),
    cancel     boolean     NOT NULL DEFAULT FALSE, -- somebody wants it to end
    step       text        NOT NULL DEFAULT '',    -- what it is at
    events     bigint      NOT NULL DEFAULT 0,
    jobs       bigint      NOT NULL DEFAULT 0,
    found      integer     NOT NULL DEFAULT 0,     -- all of them, findings holds the first
    findings   jsonb       NOT NULL DEFAULT '[]',
    problem    text        NOT NULL DEFAULT ''     -- why it failed
);
CREATE UNIQUE INDEX checks_running ON checkup.checks (state) WHERE state = 'running';
CREATE INDEX checks_listed ON checkup.checks (started_at DESC);

-- +goose Down

DROP SCHEMA checkup CASCADE;
