-- +goose Up

-- Deliveries that are done with for good, by when they may go.
CREATE INDEX deliveries_done ON webhooks.deliveries (settled_at) WHERE state IN ('delivered', 'dropped');

-- +goose Down

DROP INDEX webhooks.deliveries_done;
