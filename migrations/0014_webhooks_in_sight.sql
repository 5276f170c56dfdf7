-- +goose Up

-- How an endpoint has answered lately. The dispatcher owns these; a new URL, or
-- an endpoint that is enabled again, starts afresh.
ALTER TABLE webhooks.endpoints
	ADD COLUMN consecutive_failures integer NOT NULL DEFAULT 0, -- attempts since the last success
	ADD COLUMN failing_since        timestamptz,                -- the first of them
	ADD COLUMN last_error           text NOT NULL DEFAULT '',   -- of the latest of them
	ADD COLUMN last_success_at      timestamptz;

-- What an attempt was signed with: the headers that were sent can be shown.
ALTER TABLE webhooks.attempts
	ADD COLUMN signature          text NOT NULL DEFAULT '', -- X-Service-Signature; empty: unknown
	ADD COLUMN standard_signature text NOT NULL DEFAULT ''; -- webhook-signature

-- Deliveries that one transaction wrote are listed in the order of their events.
ALTER TABLE webhooks.deliveries ALTER COLUMN created_at SET DEFAULT clock_timestamp();

-- What waits for a word, and a job's deliveries.
CREATE INDEX deliveries_kept ON webhooks.deliveries (project_id, created_at, revision) WHERE state IN ('held', 'failed');
CREATE INDEX deliveries_of_job ON webhooks.deliveries (ordering_key, created_at);

-- A test event that failed goes, too: nobody replays it.
DROP INDEX webhooks.deliveries_done;
CREATE INDEX deliveries_done ON webhooks.deliveries (settled_at)
	WHERE state IN ('delivered', 'dropped') OR event = 'webhook.test';

-- +goose Down

DROP INDEX webhooks.deliveries_done;
CREATE INDEX deliveries_done ON webhooks.deliveries (settled_at) WHERE state IN ('delivered', 'dropped');
DROP INDEX webhooks.deliveries_of_job;
DROP INDEX webhooks.deliveries_kept;
ALTER TABLE webhooks.deliveries ALTER COLUMN created_at SET DEFAULT now();
ALTER TABLE webhooks.attempts DROP COLUMN signature, DROP COLUMN standard_signature;
ALTER TABLE webhooks.endpoints
	DROP COLUMN consecutive_failures, DROP COLUMN failing_since, DROP COLUMN last_error, DROP COLUMN last_success_at;
