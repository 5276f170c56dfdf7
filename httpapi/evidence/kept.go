package evidence

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain/retention"
	"humanqa/internal/pgpool"
)

// keptSQL selects the evidence that is kept: after how many days it expires (NULL:
// never), when that is due by the service's clock, and whether a hold, or a dispute
// that is not decided, keeps it. settings
// is a query of the settings that count. A recording is evidence, too: the shorter of its
// settings counts.
func keptSQL(settings string) string {
	return `
WITH settings AS (` + settings + `),
kept AS (
    SELECT e.id, e.account_id, e.job_id, e.content_type, e.size, e.stored_at, e.taken_until, j.project_id, d.days, r.recording,
           COALESCE(j.completed_at, j.cancelled_at, j.failed_at) + make_interval(days => d.days)
               - make_interval(secs => COALESCE(c.ahead_seconds, 0)) AS due_at,
           EXISTS (
               SELECT
               FROM readmodel.retention_holds h
               WHERE h.account_id = e.account_id
                 AND (h.kind = 'account' OR h.kind = 'project' AND h.id = j.project_id OR h.kind = 'job' AND h.id = j.id))
               OR jsonb_path_exists(j.disputes, '$[*] ? (!exists(@.decided))') AS held
    FROM http_evidence e
    JOIN readmodel.jobs j ON j.id = e.job_id AND j.account_id = e.account_id
    LEFT JOIN settings a ON a.account_id = e.account_id AND a.project_id = ''
    LEFT JOIN settings p ON p.account_id = e.account_id AND p.project_id = j.project_id AND j.project_id <> ''
    LEFT JOIN readmodel.retention_clocks c ON c.account_id = e.account_id
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT
            FROM http_recordings f
            WHERE f.id = e.id) AS recording) r
    CROSS JOIN LATERAL (
        SELECT LEAST(a.evidence_days, p.evidence_days,
            CASE WHEN r.recording THEN LEAST(a.recordings_days, p.recordings_days) END) AS days) d
    WHERE e.stored_at IS NOT NULL
      AND e.gone_at IS NULL
      AND ($1 = '' OR e.account_id = $1))`
}

// Size is a number of files with their bytes.
type Size struct {
	Files int64 `json:"files" db:"files"`
	Bytes int64 `json:"bytes" db:"bytes"`
}

// Kind is the size of one kind of evidence: recordings, or everything else.
type Kind struct {
	Size
	Held Size `json:"held" db:"held"` // a hold keeps them
	// Due goes with the next sweep, NextMonth within thirty days from now.
	Due       Size `json:"due" db:"due"`
	NextMonth Size `json:"nextMonth" db:"month"`
}

// Usage is the evidence of an account.
type Usage struct {
	Pictures   Kind `json:"evidence"` // pictures and short videos
	Recordings Kind `json:"recordings"`
	// Gone is the evidence that is kept no longer.
	Gone Size `json:"noLongerKept"`
}

// Going is the evidence that the whole account loses with the next sweep.
func (u Usage) Going() Size { return u.Pictures.Due.plus(u.Recordings.Due) }

// NextMonth is the evidence that the whole account loses within thirty days.
func (u Usage) NextMonth() Size { return u.Pictures.NextMonth.plus(u.Recordings.NextMonth) }

// Kept is all evidence that is kept.
func (u Usage) Kept() Size { return u.Pictures.Size.plus(u.Recordings.Size) }

// Held is the evidence that holds keep.
func (u Usage) Held() Size { return u.Pictures.Held.plus(u.Recordings.Held) }

// Plus adds the evidence of another account.
func (u Usage) Plus(o Usage) Usage {
	return Usage{u.Pictures.plus(o.Pictures), u.Recordings.plus(o.Recordings), u.Gone.plus(o.Gone)}
}

func (k Kind) plus(o Kind) Kind {
	return Kind{k.Size.plus(o.Size), k.Held.plus(o.Held), k.Due.plus(o.Due), k.NextMonth.plus(o.NextMonth)}
}

func (s Size) plus(o Size) Size { return Size{s.Files + o.Files, s.Bytes + o.Bytes} }

// month is how far NextMonth looks.
const month = 30 * 24 * time.Hour

const ownSettingsSQL = `
    SELECT account_id, project_id, evidence_days, recordings_days
    FROM readmodel.retention_settings
    WHERE ($1 = '' OR account_id = $1)`

const asIfSQL = `
    SELECT account_id, project_id, evidence_days, recordings_days
    FROM readmodel.retention_settings
    WHERE account_id = $1
      AND project_id <> $3
    UNION ALL
    SELECT $1, $3, $4::integer, $5::integer`

const usageOfKept = `
SELECT account_id, recording,
       count(*) AS files, COALESCE(sum(size), 0) AS bytes,
       count(*) FILTER (WHERE held) AS "held.files", COALESCE(sum(size) FILTER (WHERE held), 0) AS "held.bytes",
       count(*) FILTER (WHERE NOT held AND due_at <= now()) AS "due.files",
       COALESCE(sum(size) FILTER (WHERE NOT held AND due_at <= now()), 0) AS "due.bytes",
       count(*) FILTER (WHERE NOT held AND due_at <= now() + make_interval(secs => $2)) AS "month.files",
       COALESCE(sum(size) FILTER (WHERE NOT held AND due_at <= now() + make_interval(secs => $2)), 0) AS "month.bytes"
FROM kept
GROUP BY account_id, recording
ORDER BY account_id, recording`

type usageRow struct {
	AccountID string `db:"account_id"`
	Recording bool   `db:"recording"`
	Kind
}

const goneSQL = `
SELECT account_id, count(*) AS files, COALESCE(sum(size), 0) AS bytes
FROM http_evidence
WHERE gone_at IS NOT NULL
  AND ($1 = '' OR account_id = $1)
GROUP BY account_id`

// UsageByAccount is the usage of each account, by its id; accountID narrows it to one.
func UsageByAccount(ctx context.Context, db *sqlx.DB, accountID string) (map[string]Usage, error) {
	usage, err := usageOf(ctx, db, keptSQL(ownSettingsSQL)+usageOfKept, accountID, month.Seconds())
	if err != nil {
		return nil, err
	}
	gone, err := pgpool.List[struct {
		AccountID string `db:"account_id"`
		Size
	}](ctx, db, "what the evidence took that is kept no longer", goneSQL, accountID)
	for _, g := range gone {
		u := usage[g.AccountID]
		u.Gone = g.Size
		usage[g.AccountID] = u
	}
	return usage, err
}

func usageOf(ctx context.Context, db *sqlx.DB, query string, args ...any) (map[string]Usage, error) {
	rows, err := pgpool.List[usageRow](ctx, db, "what the evidence takes", query, args...)
	usage := map[string]Usage{}
	for _, r := range rows {
		u := usage[r.AccountID]
		if r.Recording {
			u.Recordings = r.Kind
		} else {
			u.Pictures = r.Kind
		}
		usage[r.AccountID] = u
	}
	return usage, err
}

// Usage is the evidence of the account.
func (s *Service) Usage(ctx context.Context, accountID string) (Usage, error) {
	all, err := UsageByAccount(ctx, s.DB, accountID)
	return all[accountID], err
}

// Estimate is the account's usage as if the account (projectID empty) or the project had
// these settings: Due is the evidence that would go at once.
func Estimate(ctx context.Context, db *sqlx.DB, accountID, projectID string, keep retention.Keep) (Usage, error) {
	all, err := usageOf(ctx, db, keptSQL(asIfSQL)+usageOfKept, accountID, month.Seconds(), projectID,
		keep.EvidenceDays, keep.RecordingsDays)
	return all[accountID], err
}
