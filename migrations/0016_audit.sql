-- +goose Up

-- What package auditlog signs. The tree itself is a read model, which can be
-- folded anew; these rows cannot.
CREATE SCHEMA audit;

-- The log's name and key. The private half is sealed under the master keyset.
CREATE TABLE audit.keys (
    name       text PRIMARY KEY,
    verifier   text NOT NULL,                 -- what others verify by: name+hash+key
    sealed     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX keys_one ON audit.keys ((true)); -- a log has one name

CREATE TABLE audit.checkpoints (
    size       bigint PRIMARY KEY,            -- leaves
    note       text NOT NULL,                 -- signed: golang.org/x/mod/sumdb/note
    created_at timestamptz NOT NULL DEFAULT now()
);

-- +goose Down
DROP SCHEMA audit CASCADE;
