-- +goose Up
SET LOCAL lock_timeout = '1s';
ALTER TABLE webhooks.deliveries ALTER COLUMN attempts TYPE bigint;
