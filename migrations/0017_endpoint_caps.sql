-- +goose Up

-- How many deliveries an endpoint is sent at once grows while it answers, and
-- falls to one with a time-out.
ALTER TABLE webhooks.endpoints ADD COLUMN cap integer NOT NULL DEFAULT 0; -- 0: where all begin
UPDATE webhooks.endpoints SET cap = 1 WHERE cautious;
ALTER TABLE webhooks.endpoints DROP COLUMN cautious;

-- +goose Down

ALTER TABLE webhooks.endpoints ADD COLUMN cautious boolean NOT NULL DEFAULT false;
UPDATE webhooks.endpoints SET cautious = true WHERE cap = 1;
ALTER TABLE webhooks.endpoints DROP COLUMN cap;
