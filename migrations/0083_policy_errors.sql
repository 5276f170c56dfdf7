-- +goose Up

SET LOCAL lock_timeout = '1s';

-- The error of an action could quote a client's words, such as a repository's address, and
-- outlived their erasure. It is in the service's log alone. An older process may still write
-- the column, so it stays for now.
UPDATE policy.leases
SET last_error = NULL
WHERE last_error IS NOT NULL;

-- +goose Down

SELECT 1;
