-- +goose Up

-- A list of deliveries narrowed to what is rare among a project's finds it without
-- reading the others.
CREATE INDEX deliveries_of_event ON webhooks.deliveries (project_id, event, created_at DESC, id DESC);
CREATE INDEX deliveries_dropped ON webhooks.deliveries (project_id, created_at DESC, id DESC) WHERE state = 'dropped';

-- Each of these serves its own questions only, which name what is always so
-- (webhooks/claim.go).
DROP INDEX webhooks.deliveries_due;
DROP INDEX webhooks.deliveries_order;
CREATE INDEX deliveries_due ON webhooks.deliveries (project_id, due_at) WHERE state = 'pending' AND due_at > '-infinity';
CREATE INDEX deliveries_order ON webhooks.deliveries (ordering_key, revision) WHERE state = 'pending' AND revision >= 0;

-- +goose Down

DROP INDEX webhooks.deliveries_order;
DROP INDEX webhooks.deliveries_due;
CREATE INDEX deliveries_due ON webhooks.deliveries (project_id, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_order ON webhooks.deliveries (ordering_key, revision) WHERE state = 'pending';
DROP INDEX webhooks.deliveries_dropped;
DROP INDEX webhooks.deliveries_of_event;
