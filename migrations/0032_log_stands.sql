-- +goose Up

-- Where the log's name stands in it, and since when: a copy of the log has the
-- same name at another place or since another time. NULL until a service that
-- knows of copies has run.
ALTER TABLE projection_log ADD COLUMN stands text;

-- +goose Down

ALTER TABLE projection_log DROP COLUMN stands;
