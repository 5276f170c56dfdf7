-- +goose Up

-- The webhook subscriber is run like the projections now: its checkpoint, a
-- line that is stopped, and the record of skips go along, so nothing is
-- announced twice and nothing is left out. A subscriber of an older binary
-- that still runs finds no checkpoint and writes nothing.
LOCK TABLE webhooks.checkpoint IN ACCESS EXCLUSIVE MODE;

INSERT INTO projection_checkpoints (name, generation, version, schema_name, status, serving,
    commit_position, prepare_position, applied, failure_category, failure_commit, failure_prepare, failure_detail,
    failure_attempts, failed_at, updated_at)
SELECT 'webhooks', 1, 1, 'webhooks', status, TRUE,
    CASE WHEN started THEN commit_position ELSE -1 END,
    CASE WHEN started THEN prepare_position ELSE -1 END,
    events,
    failure_category, failure_commit, failure_prepare, failure_type || ' in ' || failure_stream || ': ' || failure_detail,
    failure_attempts, updated_at, updated_at
FROM webhooks.checkpoint
WHERE name = 'webhooks'
  AND (started OR status = 'stopped'); -- else there is nothing to carry over

INSERT INTO projection_skips (name, commit_position, prepare_position, detail, who, why, skipped_at)
SELECT 'webhooks', commit_position, prepare_position, type || ' in ' || stream || ': ' || detail, actor, reason, at
FROM webhooks.skips
ORDER BY id
ON CONFLICT DO NOTHING;

DROP TABLE webhooks.checkpoint;
DROP TABLE webhooks.skips;

-- +goose Down

CREATE TABLE webhooks.checkpoint (
    name             text PRIMARY KEY,
    started          boolean NOT NULL DEFAULT false,
    commit_position  bigint NOT NULL DEFAULT 0,
    prepare_position bigint NOT NULL DEFAULT 0,
    owner            uuid,
    lease_until      timestamptz NOT NULL DEFAULT '-infinity',
    status           text NOT NULL DEFAULT 'live' CHECK (status IN ('live', 'stopped')),
    failure_category text NOT NULL DEFAULT '',
    failure_detail   text NOT NULL DEFAULT '',
    failure_stream   text NOT NULL DEFAULT '',
    failure_type     text NOT NULL DEFAULT '',
    failure_commit   bigint NOT NULL DEFAULT 0,
    failure_prepare  bigint NOT NULL DEFAULT 0,
    failure_attempts integer NOT NULL DEFAULT 0,
    events           bigint NOT NULL DEFAULT 0,
    updated_at       timestamptz NOT NULL DEFAULT now()
);

INSERT INTO webhooks.checkpoint (name, started, commit_position, prepare_position, status, events,
    failure_category, failure_detail, failure_commit, failure_prepare, failure_attempts)
SELECT name, commit_position >= 0, greatest(commit_position, 0), greatest(prepare_position, 0),
    CASE status WHEN 'stopped' THEN 'stopped' ELSE 'live' END, applied,
    coalesce(failure_category, ''), coalesce(failure_detail, ''), coalesce(failure_commit, 0), coalesce(failure_prepare, 0),
    failure_attempts
FROM projection_checkpoints
WHERE name = 'webhooks';

CREATE TABLE webhooks.skips (
    id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    commit_position  bigint NOT NULL,
    prepare_position bigint NOT NULL,
    stream           text NOT NULL,
    type             text NOT NULL,
    detail           text NOT NULL,
    actor            text NOT NULL,
    reason           text NOT NULL,
    at               timestamptz NOT NULL DEFAULT now()
);

INSERT INTO webhooks.skips (commit_position, prepare_position, stream, type, detail, actor, reason, at)
SELECT commit_position, prepare_position, '', '', detail, who, why, skipped_at
FROM projection_skips
WHERE name = 'webhooks'
ORDER BY skipped_at;

DELETE FROM projection_skips WHERE name = 'webhooks';
DELETE FROM projection_checkpoints WHERE name = 'webhooks';
