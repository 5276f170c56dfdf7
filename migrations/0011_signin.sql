-- +goose Up

-- How people prove who they are, and what they are called. What they may do is
-- in the log; nothing here is, so that all of it can be erased. Of every token
-- only the SHA-256 is kept, in lower-case hex.
CREATE SCHEMA signin;

-- A login is what a password goes with; who has none signs in by passkey.
CREATE TABLE signin.people (
    person_id text PRIMARY KEY,
    name      text NOT NULL,
    login     text UNIQUE
);

CREATE TABLE signin.passwords (
    person_id  text        PRIMARY KEY,
    hash       text        NOT NULL, -- argon2id, in PHC's format
    changed_at timestamptz NOT NULL
);

CREATE TABLE signin.passkeys (
    credential_id bytea       PRIMARY KEY,
    person_id     text        NOT NULL,
    credential    jsonb       NOT NULL,
    created_at    timestamptz NOT NULL,
    used_at       timestamptz NOT NULL
);
CREATE INDEX passkeys_by_person ON signin.passkeys (person_id);

-- One-time links. A person has one that is open at most.
CREATE TABLE signin.invites (
    hash       text        PRIMARY KEY,
    person_id  text        NOT NULL,
    name       text        NOT NULL, -- what the inviter called them
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    spent_at   timestamptz
);
CREATE INDEX invites_by_person ON signin.invites (person_id);

CREATE TABLE signin.sessions (
    hash       text        PRIMARY KEY,
    id         uuid        NOT NULL UNIQUE, -- how the list names it
    person_id  text        NOT NULL,
    account_id text        NOT NULL, -- the account that is looked at; empty: the first
    address    text        NOT NULL,
    agent      text        NOT NULL,
    created_at timestamptz NOT NULL,
    seen_at    timestamptz NOT NULL,
    proved_at  timestamptz NOT NULL, -- when the person last proved who they are
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_by_person ON signin.sessions (person_id);

-- What a passkey was asked to sign, until it answers.
CREATE TABLE signin.challenges (
    hash       text        PRIMARY KEY,
    purpose    text        NOT NULL,
    data       jsonb       NOT NULL,
    expires_at timestamptz NOT NULL
);

-- Attempts to sign in, by what is throttled: a login, an address.
CREATE TABLE signin.attempts (
    who      text        PRIMARY KEY,
    failures integer     NOT NULL,
    last_at  timestamptz NOT NULL,
    free_at  timestamptz NOT NULL -- no further attempt before
);

-- +goose Down

DROP SCHEMA signin CASCADE;
