-- +goose Up
ALTER TABLE webhooks.deliveries ADD COLUMN note text;
