-- +goose Up
CREATE SCHEMA policy;

-- Who fires a policy's timer right now. The timers themselves are a read model
-- (readmodel.timers); a lease outlives a rebuild of it.
CREATE TABLE policy.leases (
    kind        text        NOT NULL,
    key         text        NOT NULL,
    until       timestamptz NOT NULL,
    attempts    integer     NOT NULL DEFAULT 1,
    last_error  text,
    PRIMARY KEY (kind, key)
) WITH (fillfactor = 50);

CREATE INDEX leases_until ON policy.leases (until);

-- +goose Down
DROP SCHEMA policy CASCADE;
