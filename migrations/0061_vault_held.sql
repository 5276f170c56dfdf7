-- +goose Up

-- Secrets that are kept for a while and then forgotten, such as the token of a commit
-- status. Each is sealed with its account's data key. No event holds one: a deleted row
-- is a forgotten secret.
CREATE TABLE vault.held (
	account_id text        NOT NULL,
	name       text        NOT NULL, -- what the secret is for
	sealed     text        NOT NULL,
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (account_id, name)
);
CREATE INDEX held_by_expiry ON vault.held (expires_at);

-- +goose Down

DROP TABLE vault.held;
