-- +goose Up

-- The client's own headers of deliveries ([{"name", "sealed"}]), and the only origin that
-- they are sent to.
ALTER TABLE webhooks.endpoints
	ADD COLUMN headers jsonb NOT NULL DEFAULT '[]',
	ADD COLUMN headers_origin text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE webhooks.endpoints
	DROP COLUMN headers,
	DROP COLUMN headers_origin;
