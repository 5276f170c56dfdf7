-- +goose Up
-- A lease remembers for which setting of the timer it was taken (the log
-- position of the event that set it), and whether that was done: what was done
-- is never done again, also when the timers are rebuilt. fence tells a lease
-- from the next one of the same timer.
ALTER TABLE policy.leases
    ADD COLUMN position bigint NOT NULL DEFAULT -1,
    ADD COLUMN fence    bigint NOT NULL DEFAULT 0,
    ADD COLUMN state    text   NOT NULL DEFAULT 'failed' CHECK (state IN ('leased', 'failed', 'settled'));

DROP INDEX policy.leases_until;
CREATE INDEX leases_returning ON policy.leases (until) WHERE state <> 'settled';

-- Before fire_at everything in that generation of the timers is settled, so that
-- nobody looks there: what no event clears stays for ever.
CREATE TABLE policy.horizons (
    generation text        PRIMARY KEY, -- its schema
    fire_at    timestamptz NOT NULL
) WITH (fillfactor = 20);

-- +goose Down
DROP TABLE policy.horizons;
DROP INDEX policy.leases_returning;
CREATE INDEX leases_until ON policy.leases (until);
ALTER TABLE policy.leases
    DROP COLUMN position,
    DROP COLUMN fence,
    DROP COLUMN state;
