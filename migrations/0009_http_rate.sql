-- +goose Up

-- When each caller's latest requests were admitted: the sliding minute of the
-- rate limit, one row a caller, shared by all nodes. A row is worth one minute,
-- so nothing waits for the disk: the table is unlogged. A crash of Postgres
-- empties it, after which each caller may once send a full minute's requests
-- more; a clean restart keeps it.
CREATE UNLOGGED TABLE http_rate (
    caller   text     PRIMARY KEY, -- key:<id>, checker:<id>, hook:<project id>, address:<ip>
    slots    bigint[] NOT NULL,    -- of the latest request in each slot: microseconds since 1970, ascending
    last     integer  NOT NULL,    -- requests in the last slot; the others are full
    at       bigint   NOT NULL,    -- of the latest request, admitted or not
    admitted boolean  NOT NULL     -- whether it was
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- Kept in the row: a row in a second table would be rewritten with every
-- request, too.
ALTER TABLE http_rate ALTER COLUMN slots SET STORAGE MAIN;

-- +goose Down

DROP TABLE http_rate;
