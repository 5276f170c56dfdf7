-- +goose Up
-- Where each projection stands. A read model's own tables live in a schema of
-- their generation (jobs_v1_g1); the views that answers are read through live
-- in readmodel and point at the serving generation.
CREATE SCHEMA readmodel;

CREATE TABLE projection_checkpoints (
    name              text NOT NULL,
    generation        integer NOT NULL,               -- 1, 2, 3 … by name; a rebuild makes the next one
    version           integer NOT NULL,               -- of the projector's code
    schema_name       text NOT NULL UNIQUE,
    status            text NOT NULL CHECK (status IN ('building', 'live', 'stopped', 'retired')),
    serving           boolean NOT NULL DEFAULT false, -- the views point here
    commit_position   bigint NOT NULL DEFAULT -1,     -- of the last event applied; -1: none yet
    prepare_position  bigint NOT NULL DEFAULT -1,
    applied           bigint NOT NULL DEFAULT 0,      -- events that were handed to the projector
    unknown           bigint NOT NULL DEFAULT 0,      -- events passed over: this binary does not know their type
    skipped           bigint NOT NULL DEFAULT 0,      -- events passed over by an operator's word
    owner             text,                           -- lease: who may advance the checkpoint
    epoch             bigint NOT NULL DEFAULT 0,      -- fences an owner whose lease was taken over
    lease_until       timestamptz,
    failure_category  text,
    failure_commit    bigint,
    failure_prepare   bigint,
    failure_detail    text,
    failure_attempts  integer NOT NULL DEFAULT 0,     -- times the line stopped at this very event
    failed_at         timestamptz,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, generation)
) WITH (fillfactor = 20);

CREATE UNIQUE INDEX projection_checkpoints_serving ON projection_checkpoints (name) WHERE serving;

-- An operator's order to rebuild, taken by whichever service runs the
-- projection.
CREATE TABLE projection_rebuilds (
    name          text PRIMARY KEY,
    requested_at  timestamptz NOT NULL DEFAULT now()
);

-- Events that an operator took out of a projection's fold, for every
-- generation: who, and why.
CREATE TABLE projection_skips (
    name              text NOT NULL,
    commit_position   bigint NOT NULL,
    prepare_position  bigint NOT NULL,
    detail            text NOT NULL,                  -- what had failed
    who               text NOT NULL,
    why               text NOT NULL,
    skipped_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, commit_position, prepare_position)
);

-- +goose Down
DROP TABLE projection_skips;
DROP TABLE projection_rebuilds;
DROP TABLE projection_checkpoints;
DROP SCHEMA readmodel CASCADE;
