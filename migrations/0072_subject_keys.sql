-- +goose Up

SET LOCAL lock_timeout = '1s';

-- A row opens the texts of one job or one checker. wrapped is an AES-256 key that the
-- master keyset encrypted, bound to the subject's name. A key that was destroyed leaves
-- its row, so that no other key takes its place. account_id is empty for a subject of
-- the service.
CREATE TABLE vault.subject_keys (
	subject      text        PRIMARY KEY, -- the name of its stream
	account_id   text        NOT NULL,
	wrapped      bytea,
	destroyed_at timestamptz,
	CHECK ((wrapped IS NULL) = (destroyed_at IS NOT NULL))
);

-- +goose Down

DROP TABLE vault.subject_keys;
