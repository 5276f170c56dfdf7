-- +goose Up

-- What the person might do when the link was made: it is good for exactly that.
-- Links of an older binary do not say, and are good for nothing any more.
ALTER TABLE signin.invites ADD COLUMN grants jsonb NOT NULL DEFAULT '[]';
UPDATE signin.invites SET expires_at = LEAST(expires_at, now()) WHERE spent_at IS NULL;

-- Browsers in which somebody signed in by password: they may try again while others'
-- guesses at the name are paused. Of a browser's token only the SHA-256 is kept, in
-- lower-case hex.
CREATE TABLE signin.devices (
    hash      text        PRIMARY KEY,
    person_id text        NOT NULL,
    seen_at   timestamptz NOT NULL -- the last sign-in there
);
CREATE INDEX devices_by_person ON signin.devices (person_id);

-- +goose Down

DROP TABLE signin.devices;
ALTER TABLE signin.invites DROP COLUMN grants;
