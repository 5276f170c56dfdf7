-- +goose Up

-- Notices by e-mail: what each person wants, what there is to tell them, and the letters
-- that tell it. The consumer "mail" writes notices with its checkpoint.
CREATE SCHEMA mail;

CREATE TABLE mail.people (
    person_id    text        PRIMARY KEY,
    address      text        NOT NULL,
    asked_at     timestamptz NOT NULL, -- when the address was given: its link holds for this moment only
    confirmed_at timestamptz,          -- NULL: nothing but the link is sent
    stopped_at   timestamptz,          -- stopped by a link: nothing is sent
    digest_at    timestamptz           -- the last digest
);

CREATE TABLE mail.choices (
    person_id  text        NOT NULL,
    account_id text        NOT NULL,
    reports    text        NOT NULL CHECK (reports IN ('all', 'failures', 'none')),
    credits    boolean     NOT NULL,
    webhooks   boolean     NOT NULL,
    since      timestamptz NOT NULL, -- of events before it nothing is told
    PRIMARY KEY (account_id, person_id)
);
CREATE INDEX choices_by_person ON mail.choices (person_id);

-- The outbox. A letter keeps its id, its notices and so its Message-ID over all attempts.
CREATE TABLE mail.letters (
    id         uuid        PRIMARY KEY,
    person_id  text        NOT NULL,
    kind       text        NOT NULL CHECK (kind IN ('digest', 'confirm')),
    state      text        NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sent', 'dropped', 'refused')),
    created_at timestamptz NOT NULL,
    due_at     timestamptz NOT NULL, -- while it is leased: when the lease ends
    attempt    integer     NOT NULL DEFAULT 0, -- rises with each lease and fences it
    last_error text        NOT NULL DEFAULT '',
    settled_at timestamptz
);
CREATE INDEX letters_due ON mail.letters (due_at) WHERE state = 'waiting';
CREATE INDEX letters_by_person ON mail.letters (person_id, created_at);
CREATE INDEX letters_settled ON mail.letters (settled_at) WHERE state <> 'waiting';

CREATE TABLE mail.notices (
    event_id   uuid        NOT NULL,
    person_id  text        NOT NULL,
    account_id text        NOT NULL,
    kind       text        NOT NULL CHECK (kind IN ('report', 'credits', 'webhook')),
    failed     boolean     NOT NULL, -- a report with failures, or a test that was given up
    title      text        NOT NULL, -- of the test, or the project's name
    project    text        NOT NULL, -- its name; empty: none
    verdict    text        NOT NULL,
    path       text        NOT NULL, -- of the page
    at         timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    letter_id  uuid REFERENCES mail.letters (id) ON DELETE CASCADE, -- NULL: not in a letter yet
    PRIMARY KEY (person_id, event_id)
);
CREATE INDEX notices_waiting ON mail.notices (person_id, created_at) WHERE letter_id IS NULL;
CREATE INDEX notices_by_letter ON mail.notices (letter_id);
CREATE INDEX notices_by_account ON mail.notices (account_id);

-- +goose Down

DROP SCHEMA mail CASCADE;
