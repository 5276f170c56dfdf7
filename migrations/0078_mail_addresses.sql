-- +goose Up

SET LOCAL lock_timeout = '1s';

-- The letters of confirmation to an address, of all people together. A row holds a MAC of
-- the address instead of the address.
CREATE TABLE mail.addresses (
    mark       text          PRIMARY KEY,
    asked_at   timestamptz[] NOT NULL, -- the letters of the last day
    refused_at timestamptz             -- the address's reader wants none; NULL: they may come
);

-- +goose Down

SET LOCAL lock_timeout = '1s';

DROP TABLE mail.addresses;
