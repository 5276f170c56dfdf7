-- +goose Up

CREATE SCHEMA webhooks;

-- How far the subscriber has read the log. The row moves only in the
-- transaction that writes what the events led to, by comparing the old position
-- and the owner: who finds another one is not the subscriber any more.
-- A stopped subscriber waits for an operator's retry or skip.
CREATE TABLE webhooks.checkpoint (
	name             text PRIMARY KEY,
	started          boolean NOT NULL DEFAULT false,
	commit_position  bigint NOT NULL DEFAULT 0,
	prepare_position bigint NOT NULL DEFAULT 0,
	owner            uuid,
	lease_until      timestamptz NOT NULL DEFAULT '-infinity',
	status           text NOT NULL DEFAULT 'live' CHECK (status IN ('live', 'stopped')),
	failure_category text NOT NULL DEFAULT '',
	failure_detail   text NOT NULL DEFAULT '',
	failure_stream   text NOT NULL DEFAULT '',
	failure_type     text NOT NULL DEFAULT '',
	failure_commit   bigint NOT NULL DEFAULT 0,
	failure_prepare  bigint NOT NULL DEFAULT 0,
	failure_attempts integer NOT NULL DEFAULT 0,
	events           bigint NOT NULL DEFAULT 0,
	updated_at       timestamptz NOT NULL DEFAULT now()
);

INSERT INTO webhooks.checkpoint (name) VALUES ('webhooks');

-- Events that an operator had the subscriber pass over.
CREATE TABLE webhooks.skips (
	id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	commit_position  bigint NOT NULL,
	prepare_position bigint NOT NULL,
	stream           text NOT NULL,
	type             text NOT NULL,
	detail           text NOT NULL,
	actor            text NOT NULL,
	reason           text NOT NULL,
	at               timestamptz NOT NULL DEFAULT now()
);

-- An endpoint is a project's webhook. The subscriber owns the settings, the
-- dispatcher the rest. Whoever changes an endpoint or the state of one of its
-- deliveries holds this row's lock, and takes several in the order of their ids.
CREATE TABLE webhooks.endpoints (
	project_id      text PRIMARY KEY,
	account_id      text NOT NULL,
	url             text NOT NULL DEFAULT '',    -- empty: no webhook
	events          text[],                      -- NULL: every kind
	secret          text NOT NULL DEFAULT '',    -- sealed
	previous_secret text NOT NULL DEFAULT '',    -- sealed; signs too until previous_until
	previous_until  timestamptz,
	generation      bigint NOT NULL DEFAULT 0,   -- counts what makes failures of before not count
	enabled         boolean NOT NULL DEFAULT true,
	disabled_by     text NOT NULL DEFAULT '',    -- the delivery that failed for good
	disabled_reason text NOT NULL DEFAULT '',
	announced       boolean NOT NULL DEFAULT true, -- the log knows that it is disabled
	cautious        boolean NOT NULL DEFAULT false, -- one at a time since a time-out
	due_at          timestamptz                  -- when to look at its deliveries; NULL: nothing to do
);

CREATE INDEX endpoints_due ON webhooks.endpoints (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX endpoints_unannounced ON webhooks.endpoints (project_id) WHERE NOT announced;

-- The id derives from endpoint and event, so there is one row for both however
-- often the subscriber starts over.
CREATE TABLE webhooks.deliveries (
	id           uuid PRIMARY KEY,
	project_id   text NOT NULL,
	event_id     uuid NOT NULL,
	event        text NOT NULL,
	ordering_key text NOT NULL,     -- the stream, of one project; its deliveries go out in the order of revision
	revision     bigint NOT NULL,
	body         bytea NOT NULL,    -- the exact bytes to sign and send
	state        text NOT NULL CHECK (state IN ('pending', 'held', 'delivered', 'failed', 'dropped')),
	attempts     integer NOT NULL DEFAULT 0,
	failures     integer NOT NULL DEFAULT 0, -- since the last replay
	due_at       timestamptz NOT NULL DEFAULT now(), -- a claim moves it to the end of its lease
	lease_id     uuid,              -- fences completion; set while an attempt runs
	last_status  integer,
	last_error   text NOT NULL DEFAULT '',
	created_at   timestamptz NOT NULL DEFAULT now(),
	settled_at   timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX deliveries_due ON webhooks.deliveries (project_id, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_order ON webhooks.deliveries (ordering_key, revision) WHERE state = 'pending';
CREATE INDEX deliveries_leased ON webhooks.deliveries (project_id) WHERE lease_id IS NOT NULL;
CREATE INDEX deliveries_listed ON webhooks.deliveries (project_id, created_at DESC, id DESC);

CREATE TABLE webhooks.attempts (
	delivery_id uuid NOT NULL REFERENCES webhooks.deliveries ON DELETE CASCADE,
	attempt     integer NOT NULL,
	at          timestamptz NOT NULL,
	duration_ms integer NOT NULL,
	url         text NOT NULL,
	status      integer,            -- NULL: no answer
	error       text NOT NULL,      -- empty: success
	response    text NOT NULL,      -- how the answer's body begins
	PRIMARY KEY (delivery_id, attempt)
);

-- +goose Down

DROP SCHEMA webhooks CASCADE;
