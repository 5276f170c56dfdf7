-- +goose Up

SET LOCAL lock_timeout = '1s';

-- Where the database stood when a service last ran on it: the server, its timeline and the
-- database. Another place means that a backup was restored, so the log begins a new
-- generation. NULL: no service of this version has looked yet.
ALTER TABLE projection_log ADD COLUMN place text;

-- +goose Down

ALTER TABLE projection_log DROP COLUMN place;
