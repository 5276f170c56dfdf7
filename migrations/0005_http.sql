-- +goose Up

-- What an Idempotency-Key stands for: the command that was issued for it and,
-- once there is one, the answer. A row without a status is in flight until
-- leased_until; after that the next request with the same body takes it over
-- under the same command id.
CREATE TABLE http_idempotency (
    account_id   text        NOT NULL,
    path         text        NOT NULL,
    key          text        NOT NULL,
    fingerprint  text        NOT NULL, -- keyed hash of the body
    command_id   uuid        NOT NULL,
    leased_until timestamptz NOT NULL,
    status       smallint,
    body         text,                 -- sealed
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (account_id, path, key),
    CHECK ((status IS NULL) = (body IS NULL))
);
CREATE INDEX http_idempotency_by_age ON http_idempotency (created_at);

-- +goose Down

DROP TABLE http_idempotency;
