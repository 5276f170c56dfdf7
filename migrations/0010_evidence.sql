-- +goose Up

-- What checkers uploaded: whose it is and where it belongs. The files lie in the
-- bucket under account_id/job_id/id. A row is there before its file: a row that
-- stays without stored_at is an upload that broke off, and is swept together
-- with what may lie in the bucket.
CREATE TABLE http_evidence (
    id           uuid        PRIMARY KEY,
    account_id   text        NOT NULL,
    job_id       text        NOT NULL,
    checker_id   text        NOT NULL,
    digest       bytea       NOT NULL, -- SHA-256 of the file: the same file again is a repeat
    content_type text        NOT NULL,
    size         bigint      NOT NULL, -- bytes
    begun_at     timestamptz NOT NULL,
    stored_at    timestamptz,
    UNIQUE (account_id, job_id, digest)
);

CREATE INDEX http_evidence_unfinished ON http_evidence (begun_at)
    WHERE stored_at IS NULL;

-- +goose Down

DROP TABLE http_evidence;
