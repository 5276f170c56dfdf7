-- +goose Up

-- What a checker records is bounded over jobs and claims, by when it was begun;
-- and a process that makes a file of a recording says until when it may.
ALTER TABLE http_recordings
    ADD COLUMN begun_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN taken_until timestamptz;

CREATE INDEX http_recordings_of_checker ON http_recordings (checker_id, begun_at);
CREATE INDEX http_recording_parts_open ON http_recording_parts (recording_id)
    WHERE stored_at IS NULL;

-- +goose Down

DROP INDEX http_recording_parts_open;
DROP INDEX http_recordings_of_checker;
ALTER TABLE http_recordings
    DROP COLUMN taken_until,
    DROP COLUMN begun_at;
