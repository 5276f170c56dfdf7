-- +goose Up

-- What the audit remembers, so that checkpoints that are taken away are missed, and who
-- looks after the whole log, once a day.
ALTER TABLE audit.keys
    ADD COLUMN signed      bigint NOT NULL DEFAULT 0,   -- checkpoints
    ADD COLUMN signed_size bigint NOT NULL DEFAULT 0,   -- leaves of the largest one
    ADD COLUMN checked_at  timestamptz,                 -- when a check of the whole log last began
    ADD COLUMN findings    bigint NOT NULL DEFAULT 0,   -- of that check
    ADD COLUMN problem     text NOT NULL DEFAULT '';    -- why no checkpoint is signed

UPDATE audit.keys
SET (signed, signed_size) = (SELECT count(*), coalesce(max(size), 0) FROM audit.checkpoints);

-- +goose Down
ALTER TABLE audit.keys
    DROP COLUMN signed,
    DROP COLUMN signed_size,
    DROP COLUMN checked_at,
    DROP COLUMN findings,
    DROP COLUMN problem;
