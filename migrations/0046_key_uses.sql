-- +goose Up

-- When each API key was used last, to the minute.
CREATE TABLE http_key_uses (
    key_id     text        PRIMARY KEY,
    account_id text        NOT NULL,
    used_at    timestamptz NOT NULL
);
CREATE INDEX http_key_uses_by_account ON http_key_uses (account_id);

-- +goose Down

DROP TABLE http_key_uses;
