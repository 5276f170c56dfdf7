-- +goose Up

SET LOCAL lock_timeout = '1s';

-- The keys of the master keyset that this database and its log rely on. A keyset that lacks
-- one of them is refused at the start.
CREATE TABLE vault.master_keys (
	key_id bytea   PRIMARY KEY CHECK (length(key_id) = 4), -- tink's, big endian
	wraps  boolean NOT NULL -- data keys may be wrapped under it; else it only verifies MACs of events
);

-- An older version left no record of them, but each ciphertext names its key: behind a byte
-- with tink's version. A data key's ciphertext stands in a message, behind its tag and its length.
INSERT INTO vault.master_keys (key_id, wraps)
SELECT substring(proof FROM 2 FOR 4), true FROM vault.master_proof
UNION
SELECT DISTINCT substring(wrapped FROM 5 FOR 4), true FROM vault.data_keys WHERE wrapped IS NOT NULL
UNION
SELECT DISTINCT substring(wrapped FROM 2 FOR 4), true FROM vault.subject_keys WHERE wrapped IS NOT NULL;

-- +goose Down

SET LOCAL lock_timeout = '1s';

DROP TABLE vault.master_keys;
