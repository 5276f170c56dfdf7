-- +goose Up

-- Forms that wait until their person has proved who they are. What was sent is
-- sealed. A form belongs to one session, and goes with it.
CREATE TABLE signin.forms (
    session_id uuid        NOT NULL REFERENCES signin.sessions (id) ON DELETE CASCADE,
    id         uuid        NOT NULL, -- its command's id
    person_id  text        NOT NULL,
    sealed     text        NOT NULL,
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (session_id, id)
);
CREATE INDEX forms_by_person ON signin.forms (person_id);

-- What its person calls a passkey; empty: nothing yet.
ALTER TABLE signin.passkeys ADD COLUMN name text NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE signin.passkeys DROP COLUMN name;
DROP TABLE signin.forms;
