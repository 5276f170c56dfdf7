-- +goose Up

SET LOCAL lock_timeout = '1s';

-- The address at which clients reach the node that holds the log's lock; empty: it has none
-- that others could use. The holder writes it when it takes the lock.
CREATE TABLE eventlog.holder (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	address text NOT NULL
);

-- +goose Down

SET LOCAL lock_timeout = '1s';

DROP TABLE eventlog.holder;
