-- +goose Up

-- What a receiver made of a rotation's new secret, until the rotation ends: nothing
-- yet, accepted, or confirmed, which the log is to be told.
ALTER TABLE webhooks.endpoints
	ADD COLUMN new_secret text NOT NULL DEFAULT '' CHECK (new_secret IN ('', 'accepted', 'confirmed'));
CREATE INDEX endpoints_confirmed ON webhooks.endpoints (project_id) WHERE new_secret = 'confirmed';

-- +goose Down

ALTER TABLE webhooks.endpoints DROP COLUMN new_secret;
