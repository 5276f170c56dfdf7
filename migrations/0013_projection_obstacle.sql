-- +goose Up

-- What keeps a generation that is built from serving, such as a view of an
-- operator's own that uses a column which is gone; empty: nothing.
ALTER TABLE projection_checkpoints ADD COLUMN obstacle text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE projection_checkpoints DROP COLUMN obstacle;
