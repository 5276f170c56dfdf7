-- +goose Up

-- Links to one report each, for people who do not sign in. Of a link's token
-- only the SHA-256 is kept, in lower-case hex; ending one removes its row.
CREATE TABLE signin.shares (
    hash       text        PRIMARY KEY,
    id         uuid        NOT NULL UNIQUE, -- how the list names it
    account_id text        NOT NULL,
    job_id     text        NOT NULL,
    person_id  text        NOT NULL, -- who made it
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX shares_by_job ON signin.shares (account_id, job_id);

-- What somebody keeps of the pages: filters under a name, and how far they have
-- seen an account's notices.
CREATE SCHEMA desk;

CREATE TABLE desk.views (
    id         uuid        PRIMARY KEY,
    person_id  text        NOT NULL,
    account_id text        NOT NULL,
    name       text        NOT NULL,
    query      text        NOT NULL, -- of the page's URL, without the question mark
    created_at timestamptz NOT NULL,
    UNIQUE (person_id, account_id, name)
);

CREATE TABLE desk.seen (
    person_id  text NOT NULL,
    account_id text NOT NULL,
    cursor     text NOT NULL, -- of the account's events
    PRIMARY KEY (person_id, account_id)
);

-- +goose Down

DROP SCHEMA desk CASCADE;
DROP TABLE signin.shares;
