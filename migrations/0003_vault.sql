-- +goose Up

CREATE SCHEMA vault;

-- One row is what opens one account's secrets. Both columns hold tink keysets
-- encrypted by the master keyset, bound to the account's id; the master keyset
-- is not in the database. Deleting a row shreds every secret of the account.
CREATE TABLE vault.data_keys (
	account_id  text PRIMARY KEY,
	wrapped     bytea NOT NULL,
	fingerprint bytea NOT NULL,
	created_at  timestamptz NOT NULL DEFAULT now()
);

-- A known text sealed by the master keyset that this database's data keys are
-- wrapped with: who cannot open it has the wrong keyset.
CREATE TABLE vault.master_proof (
	single boolean PRIMARY KEY DEFAULT true CHECK (single),
	proof  bytea NOT NULL
);

-- +goose Down

DROP SCHEMA vault CASCADE;
