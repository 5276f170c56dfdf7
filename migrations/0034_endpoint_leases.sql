-- +goose Up

-- An endpoint is leased, no single delivery: whoever sends to it says here until
-- when it is theirs, and which deliveries they are sending. So a claim writes one row
-- for all of them.
ALTER TABLE webhooks.endpoints
	ADD COLUMN lease_id     uuid,                         -- the dispatcher that sends; NULL: none does
	ADD COLUMN leased_until timestamptz,
	ADD COLUMN in_flight    uuid[] NOT NULL DEFAULT '{}'; -- deliveries; empty without a lease
ALTER TABLE webhooks.endpoints SET (fillfactor = 50);

-- What an older binary was sending is written off, as at the end of its lease, until
-- which it waits.
INSERT INTO webhooks.attempts (delivery_id, attempt, at, duration_ms, url, status, error, response)
SELECT d.id, d.attempts, now(), 0, e.url, NULL, 'the outcome is unknown: the sender went away', ''
FROM webhooks.deliveries d
JOIN webhooks.endpoints e USING (project_id)
WHERE d.lease_id IS NOT NULL
ON CONFLICT DO NOTHING;

DROP INDEX webhooks.deliveries_leased;
ALTER TABLE webhooks.deliveries DROP COLUMN lease_id;

-- +goose Down

ALTER TABLE webhooks.deliveries ADD COLUMN lease_id uuid;
CREATE INDEX deliveries_leased ON webhooks.deliveries (project_id) WHERE lease_id IS NOT NULL;
ALTER TABLE webhooks.endpoints RESET (fillfactor);
ALTER TABLE webhooks.endpoints DROP COLUMN lease_id, DROP COLUMN leased_until, DROP COLUMN in_flight;
