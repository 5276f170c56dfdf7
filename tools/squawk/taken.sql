-- +goose Up
SET LOCAL lock_timeout = '1s';
CREATE TABLE webhooks.notes (id bigint PRIMARY KEY, note text NOT NULL);
CREATE INDEX notes_by_text ON webhooks.notes (note);
ALTER TABLE webhooks.deliveries ADD COLUMN note text NOT NULL DEFAULT '';
ALTER TABLE webhooks.deliveries DROP COLUMN cautious;

-- +goose Down
ALTER TABLE webhooks.deliveries DROP COLUMN note;
