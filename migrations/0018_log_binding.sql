-- +goose Up

-- The log that everything projected here comes from (domain/origin). No row
-- before a service that knows of names has run.
CREATE TABLE projection_log (
    one      boolean     PRIMARY KEY DEFAULT true CHECK (one),
    log_id   text        NOT NULL,
    bound_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- +goose Down

DROP TABLE projection_log;
