-- +goose Up

SET LOCAL lock_timeout = '1s';

-- The views of declared projections.
CREATE SCHEMA declared;

-- Declared projections, as their files say. Their checkpoints have the name declared_<name>.
CREATE TABLE declared_projections (
    name      text PRIMARY KEY,
    version   integer NOT NULL,
    file      text NOT NULL,
    added_at  timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP TABLE declared_projections;
DROP SCHEMA declared CASCADE;
