-- +goose Up
CREATE SCHEMA policy;

-- Timers of the policies: set and cleared by events (projections, in the
-- transaction of the checkpoint), leased and fired by any node.
CREATE TABLE policy.timers (
    kind         text        NOT NULL,
    key          text        NOT NULL,
    account_id   text        NOT NULL,
    due_at       timestamptz NOT NULL,
    leased_until timestamptz,
    attempts     integer     NOT NULL DEFAULT 0,
    last_error   text,
    PRIMARY KEY (kind, key)
);

CREATE INDEX timers_due ON policy.timers (due_at);

-- +goose Down
DROP SCHEMA policy CASCADE;
