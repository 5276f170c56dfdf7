-- +goose Up
SET LOCAL lock_timeout = '1s';
CREATE INDEX deliveries_by_event ON webhooks.deliveries (event);
