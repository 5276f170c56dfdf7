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

-- +goose Down
DROP INDEX policy.leases_returning;
CREATE INDEX leases_until ON policy.leases (until);
ALTER TABLE policy.leases
    DROP COLUMN position,
    DROP COLUMN fence,
    DROP COLUMN state;
