-- +goose Up

-- A checker's question waits for minutes only: it has letters of its own.
ALTER TABLE mail.choices ADD COLUMN questions boolean NOT NULL DEFAULT false;
ALTER TABLE mail.people ADD COLUMN question_at timestamptz; -- the last letter with questions
ALTER TABLE mail.letters
    DROP CONSTRAINT letters_kind_check,
    ADD CONSTRAINT letters_kind_check CHECK (kind IN ('digest', 'question', 'confirm'));
ALTER TABLE mail.notices
    DROP CONSTRAINT notices_kind_check,
    ADD CONSTRAINT notices_kind_check CHECK (kind IN ('report', 'question', 'credits', 'webhook'));

-- +goose Down

DELETE FROM mail.notices WHERE kind = 'question';
DELETE FROM mail.letters WHERE kind = 'question';
ALTER TABLE mail.notices
    DROP CONSTRAINT notices_kind_check,
    ADD CONSTRAINT notices_kind_check CHECK (kind IN ('report', 'credits', 'webhook'));
ALTER TABLE mail.letters
    DROP CONSTRAINT letters_kind_check,
    ADD CONSTRAINT letters_kind_check CHECK (kind IN ('digest', 'confirm'));
ALTER TABLE mail.people DROP COLUMN question_at;
ALTER TABLE mail.choices DROP COLUMN questions;
