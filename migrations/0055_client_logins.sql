-- +goose Up

-- Sign-ins of the command line that wait for a person at the dashboard. Of the code that
-- the client holds only the SHA-256 is kept, in lower-case hex. The key itself is made when
-- the client collects it, and is never here.
CREATE TABLE signin.client_logins (
    device_hash  text        PRIMARY KEY,
    user_code    text        NOT NULL UNIQUE,
    client       text        NOT NULL, -- what the client calls itself
    address      text        NOT NULL,
    command_id   uuid        NOT NULL, -- of the key's command: two collections make one key
    expires_at   timestamptz NOT NULL,
    approval     jsonb,                -- NULL: nobody has answered
    denied       boolean     NOT NULL DEFAULT false,
    collected_at timestamptz
);
CREATE INDEX client_logins_by_expiry ON signin.client_logins (expires_at);

-- +goose Down

DROP TABLE signin.client_logins;
