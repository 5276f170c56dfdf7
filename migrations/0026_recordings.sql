-- +goose Up

-- Recordings that checkers send while they test: whose they are, and how much of
-- each is there. Their parts lie in the bucket, each under account_id/job_id/id,
-- and a part's row is there before its file, as with evidence. Once one is
-- finished it becomes a piece of evidence of the same id.
CREATE TABLE http_recordings (
    id           uuid        PRIMARY KEY,
    account_id   text        NOT NULL,
    job_id       text        NOT NULL,
    checker_id   text        NOT NULL,
    claim_token  integer     NOT NULL,
    content_type text        NOT NULL, -- by the content of the first part; '' before it
    size         bigint      NOT NULL, -- bytes that were acknowledged
    parts        integer     NOT NULL,
    started_at   timestamptz NOT NULL, -- of what is seen
    due_at       timestamptz NOT NULL, -- when the service looks at it next
    finished_at  timestamptz,          -- no part is taken any more
    attached_at  timestamptz           -- it is evidence, and the job's
);

CREATE INDEX http_recordings_of_job ON http_recordings (account_id, job_id);
CREATE INDEX http_recordings_due ON http_recordings (due_at)
    WHERE attached_at IS NULL;

CREATE TABLE http_recording_parts (
    id           uuid        PRIMARY KEY,
    recording_id uuid        NOT NULL,
    account_id   text        NOT NULL,
    job_id       text        NOT NULL,
    at           bigint      NOT NULL, -- where in the recording
    size         bigint      NOT NULL, -- bytes
    begun_at     timestamptz NOT NULL,
    stored_at    timestamptz           -- NULL: it broke off, or is needed no more
);

CREATE UNIQUE INDEX http_recording_parts_order ON http_recording_parts (recording_id, at)
    WHERE stored_at IS NOT NULL;
CREATE INDEX http_recording_parts_unneeded ON http_recording_parts (begun_at)
    WHERE stored_at IS NULL;

-- +goose Down

DROP TABLE http_recording_parts;
DROP TABLE http_recordings;
