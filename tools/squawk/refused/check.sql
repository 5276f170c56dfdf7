-- +goose Up
SET LOCAL lock_timeout = '1s';
ALTER TABLE webhooks.deliveries ADD CONSTRAINT deliveries_event CHECK (event <> '');
