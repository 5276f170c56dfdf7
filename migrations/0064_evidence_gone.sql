-- +goose Up
SET LOCAL lock_timeout = '1s';

-- Evidence that is kept no longer keeps its row. taken_until is the lease of the process
-- that asks the log whether a piece goes. gone_at and gone_why repeat what the log says
-- (job.evidence_expired); the file goes after that, and then the row says erased_at.
ALTER TABLE http_evidence
    ADD COLUMN taken_until timestamptz,
    ADD COLUMN gone_at     timestamptz, -- by the account's clock
    ADD COLUMN gone_why    text,
    ADD COLUMN erased_at   timestamptz;

CREATE INDEX http_evidence_to_erase ON http_evidence (gone_at)
    WHERE gone_at IS NOT NULL AND erased_at IS NULL;
CREATE INDEX http_evidence_taken ON http_evidence (taken_until)
    WHERE taken_until IS NOT NULL;

-- +goose Down
SET LOCAL lock_timeout = '1s';

DROP INDEX http_evidence_taken;
DROP INDEX http_evidence_to_erase;
ALTER TABLE http_evidence
    DROP COLUMN erased_at,
    DROP COLUMN gone_why,
    DROP COLUMN gone_at,
    DROP COLUMN taken_until;
