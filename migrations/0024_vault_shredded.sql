-- +goose Up

-- A key that was destroyed leaves its row: nothing may be sealed for that
-- account any more, and whoever is just making it a key finds the row taken.
ALTER TABLE vault.data_keys
	ALTER COLUMN wrapped DROP NOT NULL,
	ALTER COLUMN fingerprint DROP NOT NULL,
	ADD COLUMN shredded_at timestamptz,
	ADD CHECK ((wrapped IS NULL) = (shredded_at IS NOT NULL) AND (fingerprint IS NULL) = (shredded_at IS NOT NULL));

-- +goose Down

DELETE FROM vault.data_keys WHERE shredded_at IS NOT NULL;
ALTER TABLE vault.data_keys
	DROP COLUMN shredded_at,
	ALTER COLUMN wrapped SET NOT NULL,
	ALTER COLUMN fingerprint SET NOT NULL;
