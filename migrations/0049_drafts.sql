-- +goose Up

-- What somebody has half filled in: one draft a form, of each person in each account.
CREATE TABLE desk.drafts (
    person_id  text        NOT NULL,
    account_id text        NOT NULL,
    form       text        NOT NULL, -- test, session, batch
    fields     text        NOT NULL, -- as a form is posted; nothing secret
    saved_at   timestamptz NOT NULL,
    PRIMARY KEY (person_id, account_id, form)
);

-- +goose Down

DROP TABLE desk.drafts;
