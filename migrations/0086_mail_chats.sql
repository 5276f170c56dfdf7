-- +goose Up

SET LOCAL lock_timeout = '1s';

-- A project's chat gets letters as a person does: person_id is the project's id, and the
-- address is read from the log.
ALTER TABLE mail.people ADD COLUMN account_id text; -- of the project; NULL: a person with e-mail
ALTER TABLE mail.letters ADD COLUMN account_id text; -- as above

-- +goose Down

SET LOCAL lock_timeout = '1s';

DELETE FROM mail.notices WHERE person_id IN (SELECT person_id FROM mail.people WHERE account_id IS NOT NULL);
DELETE FROM mail.choices WHERE person_id IN (SELECT person_id FROM mail.people WHERE account_id IS NOT NULL);
DELETE FROM mail.letters WHERE account_id IS NOT NULL;
DELETE FROM mail.people WHERE account_id IS NOT NULL;
ALTER TABLE mail.letters DROP COLUMN account_id;
ALTER TABLE mail.people DROP COLUMN account_id;
