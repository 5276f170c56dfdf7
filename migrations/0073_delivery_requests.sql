-- +goose Up

SET LOCAL lock_timeout = '1s';

-- Of the request that led to the event: its id, and its traceparent (W3C Trace Context).
ALTER TABLE webhooks.deliveries
	ADD COLUMN request_id text NOT NULL DEFAULT '',
	ADD COLUMN trace text NOT NULL DEFAULT '';

-- +goose Down

SET LOCAL lock_timeout = '1s';

ALTER TABLE webhooks.deliveries
	DROP COLUMN request_id,
	DROP COLUMN trace;
