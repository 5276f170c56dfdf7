-- +goose Up

-- Streams that a generation goes on without: the first event of each that it could not
-- apply. Those behind it wait with it, in the log.
CREATE TABLE projection_set_aside (
    name              text NOT NULL,
    generation        integer NOT NULL,
    stream            text NOT NULL,
    revision          bigint NOT NULL,       -- of that event
    commit_position   bigint NOT NULL,
    prepare_position  bigint NOT NULL,
    type              text NOT NULL,
    category          text NOT NULL,
    detail            text NOT NULL,
    attempts          integer NOT NULL DEFAULT 1,
    set_aside_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at            timestamptz NOT NULL,  -- when it is tried again
    PRIMARY KEY (name, generation, stream),
    FOREIGN KEY (name, generation) REFERENCES projection_checkpoints ON DELETE CASCADE
);

-- A line that an older binary stopped goes on: what it stopped at is set aside, or stops
-- it again.
UPDATE projection_checkpoints
SET status = CASE WHEN serving THEN 'live' ELSE 'building' END
WHERE status = 'stopped';

-- +goose Down

DROP TABLE projection_set_aside;
