// Package commitstatuses is the read model of the commit statuses that jobs asked for.
package commitstatuses

import (
	"context"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps a row per job with a commit status. The token is in no event, and so
// never here.
var Projector = readmodel.New(readmodel.Spec{
	Name: "commit_statuses", Version: 2,
	Tables: []consumer.Table{{Name: "commit_statuses", DDL: commitStatusesDDL}},
	Handles: domain.TypesOf((*job.CommitStatusRequested)(nil), (*job.CommitStatusSet)(nil), (*job.CommitStatusAbandoned)(nil),
		(*job.Completed)(nil), (*job.Cancelled)(nil), (*job.Failed)(nil), (*job.Erased)(nil)),
	Apply: apply,
})

// statement is the first of the jobs with one verdict. state is the newest state that
// this job recorded at the code host; of all jobs of a statement the newest record holds.
const commitStatusesDDL = `
CREATE TABLE {schema}.commit_statuses (
    job_id     text        PRIMARY KEY,
    account_id text        NOT NULL,
    statement  text        NOT NULL,
    provider   text        NOT NULL,
    repository text        NOT NULL,
    commit     text        NOT NULL,
    context    text        NOT NULL,
    ref        text        NOT NULL,
    fail_on    text        NOT NULL,
    ended      boolean     NOT NULL,
    state      text        NOT NULL,
    abandoned  text        NOT NULL,
    told_at    timestamptz
);
CREATE INDEX commit_statuses_by_statement ON {schema}.commit_statuses (account_id, statement);
CREATE INDEX commit_statuses_by_place     ON {schema}.commit_statuses (account_id, provider, repository, context, ref)
    WHERE NOT ended AND ref <> '';
`

// Status is a commit status as the code host has it. Statement is the first of the jobs
// with the same verdict. State is empty before the first one. Abandoned is the reason why no
// other state will come. ToldAt is the time of the newest record; nil: there is none.
type Status struct {
	JobID      string          `json:"job_id"`
	AccountID  string          `json:"account_id"`
	Statement  string          `json:"statement"`
	Provider   string          `json:"provider"`
	Repository string          `json:"repository"`
	Commit     string          `json:"commit"`
	Context    string          `json:"context"`
	Ref        string          `json:"ref"`
	FailOn     string          `json:"fail_on"`
	Ended      bool            `json:"ended"`
	State      job.CommitState `json:"state"`
	Abandoned  string          `json:"abandoned"`
	ToldAt     *time.Time      `json:"told_at"`
}

// concerns says whether the event changes a row: most jobs have no commit status.
func concerns(e domain.Event) bool {
	switch e := e.(type) {
	case *job.Completed:
		return e.CommitStatus
	case *job.Cancelled:
		return e.CommitStatus
	case *job.Failed:
		return e.CommitStatus
	}
	return true
}

// apply folds the batch per job in memory: each row is written once.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var ids []string
	for _, r := range batch {
		if concerns(r.Event) {
			ids = append(ids, r.StreamID())
		}
	}
	if len(ids) == 0 {
		return nil
	}
	loaded, err := readmodel.Load[Status](ctx, tx, schema, "commit_statuses", "job_id", ids)
	if err != nil {
		return err
	}
	f := fold{rows: make(map[string]*Status, len(loaded))}
	for i := range loaded {
		f.add(&loaded[i])
	}
	for _, r := range batch {
		f.fold(r)
	}
	return readmodel.Run(ctx, tx, schema, readmodel.Upsert("commit_statuses", f.order, "job_id"))
}

// fold has the rows of some jobs, in the order in which they came.
type fold struct {
	rows  map[string]*Status
	order []*Status
}

func (f *fold) add(row *Status) { f.rows[row.JobID], f.order = row, append(f.order, row) }

func (f *fold) fold(r domain.Recorded) {
	if e, ok := r.Event.(*job.CommitStatusRequested); ok {
		f.add(&Status{
			JobID: r.StreamID(), AccountID: r.Meta.AccountID, Statement: e.Jobs[0], Provider: e.Provider, Repository: e.Repository,
			Commit: e.Commit, Context: e.Context, Ref: e.Ref, FailOn: e.FailOn,
		})
		return
	}
	row := f.rows[r.StreamID()]
	if row == nil || !concerns(r.Event) {
		return
	}
	switch e := r.Event.(type) {
	case *job.CommitStatusSet:
		row.State, row.ToldAt = e.State, readmodel.MomentPtr(e.At)
	case *job.CommitStatusAbandoned:
		row.Abandoned, row.ToldAt = e.Reason, readmodel.MomentPtr(e.At)
	case *job.Completed, *job.Cancelled, *job.Failed:
		row.Ended = true
	case *job.Erased:
		row.Repository, row.Context, row.Ref = domain.Erased(row.Repository), domain.Erased(row.Context), domain.Erased(row.Ref)
	}
}

// Past is the commit status of a job at an earlier moment. It folds the streams of the
// jobs with the same verdict in the same way, without a table.
type Past struct {
	jobID string
	jobs  []string
	fold  fold
}

// NewPast is a job before its first event.
func NewPast(jobID string) *Past {
	return &Past{jobID: jobID, fold: fold{rows: map[string]*Status{}}}
}

// Fold adds the next event of the job's stream, or of a job of Others.
func (p *Past) Fold(r domain.Recorded) {
	if e, ok := r.Event.(*job.CommitStatusRequested); ok && r.StreamID() == p.jobID {
		p.jobs = e.Jobs
	}
	p.fold.fold(r)
}

// Others are the other jobs with the same verdict, once the job's own stream is folded.
func (p *Past) Others() []string {
	return slices.DeleteFunc(slices.Clone(p.jobs), func(id string) bool { return id == p.jobID })
}

// Status gives the commit status; found is false without one.
func (p *Past) Status() (s Status, found bool) {
	own := p.fold.rows[p.jobID]
	if own == nil {
		return Status{}, false
	}
	newest := own
	for _, row := range p.fold.order {
		if row.ToldAt != nil && (newest.ToldAt == nil || row.ToldAt.After(*newest.ToldAt)) {
			newest = row
		}
	}
	told := *own
	told.State, told.Abandoned, told.ToldAt = newest.State, newest.Abandoned, newest.ToldAt
	return told, true
}

// Reads reads commit statuses.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

const ofJobSQL = `
SELECT j.job_id, j.account_id, j.statement, j.provider, j.repository, j.commit, j.context, j.ref, j.fail_on, j.ended,
       o.state, o.abandoned, o.told_at
FROM readmodel.commit_statuses j
JOIN readmodel.commit_statuses o ON o.account_id = j.account_id AND o.statement = j.statement
WHERE j.account_id = $1
  AND j.job_id = $2
ORDER BY o.told_at DESC NULLS LAST, o.job_id
LIMIT 1`

// OfJob gives the commit status of a job; found is false without one.
func (q *Reads) OfJob(ctx context.Context, accountID, jobID string) (s Status, found bool, err error) {
	return pgpool.Find[Status](ctx, q.db, "commit status", ofJobSQL, accountID, jobID)
}

const samePlaceSQL = `
SELECT job_id
FROM readmodel.commit_statuses
WHERE account_id = $1
  AND provider = $2
  AND repository = $3
  AND context = $4
  AND ref = $5
  AND ref <> ''
  AND NOT ended
ORDER BY job_id
LIMIT 500`

// SamePlace are the jobs that have not ended and have a commit status at the place.
func (q *Reads) SamePlace(ctx context.Context, accountID string, at job.CommitStatus) (jobIDs []string, err error) {
	return pgpool.List[string](ctx, q.db, "commit statuses at one place", samePlaceSQL,
		accountID, at.Provider, at.Repository, at.Context, at.Ref)
}
