// Package oversight is the read model of the acts of operators.
package oversight

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/oversight"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

// Projector keeps a row per act.
var Projector = readmodel.New(readmodel.Spec{
	Name: "oversight", Version: 2,
	Tables:  []consumer.Table{{Name: "operator_acts", DDL: actsDDL}},
	Handles: domain.TypesOf((*oversight.Acted)(nil), (*oversight.Refused)(nil)),
	Apply:   readmodel.Each(change),
})

const actsDDL = `
CREATE TABLE {schema}.operator_acts (
    act_id           text PRIMARY KEY,
    at               timestamptz NOT NULL,
    commit_position  bigint NOT NULL,
    prepare_position bigint NOT NULL,
    person_id        text NOT NULL,
    act              text NOT NULL,
    subject          text NOT NULL,
    account_id       text NOT NULL,
    detail           text NOT NULL,
    reason           text NOT NULL,
    problem          text NOT NULL
);
CREATE INDEX operator_acts_listed ON {schema}.operator_acts (commit_position DESC);
CREATE INDEX operator_acts_by_account ON {schema}.operator_acts (account_id, commit_position DESC) WHERE account_id <> '';
CREATE INDEX operator_acts_by_person ON {schema}.operator_acts (person_id, commit_position DESC);
`

const insertActSQL = `
INSERT INTO {schema}.operator_acts (act_id, at, commit_position, prepare_position, person_id, act, subject, account_id, detail, reason, problem)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, '')`

const refuseActSQL = `
UPDATE {schema}.operator_acts
SET problem = $2
WHERE act_id = $1`

// change writes event by event: people act slowly.
func change(r domain.Recorded) (query string, args []any) {
	switch e := r.Event.(type) {
	case *oversight.Acted:
		return insertActSQL, []any{e.ActID, readmodel.Moment(r.Meta.Time), int64(r.Position.Commit), int64(r.Position.Prepare),
			e.PersonID, e.Act, e.Subject, e.AccountID, e.Detail, e.Reason}
	case *oversight.Refused:
		return refuseActSQL, []any{e.ActID, e.Problem}
	}
	return "", nil
}

// Reads reads the acts of operators.
type Reads struct{ db *sqlx.DB }

// NewReads reads through the views in schema readmodel.
func NewReads(db *sqlx.DB) *Reads { return &Reads{db: readmodel.Pool(db)} }

// Act is an act of an operator.
type Act struct {
	ID        string        `json:"act_id"`
	At        time.Time     `json:"at"`
	Commit    int64         `json:"commit_position"`
	Prepare   int64         `json:"prepare_position"`
	PersonID  string        `json:"person_id"`
	Act       oversight.Act `json:"act"`
	Subject   string        `json:"subject"`
	AccountID string        `json:"account_id"`
	Detail    string        `json:"detail"`
	Reason    string        `json:"reason"`
	Problem   string        `json:"problem"` // why it was not done; empty: it was done
}

// Position is where the act stands in the log.
func (a Act) Position() domain.Position {
	return domain.Position{Commit: uint64(a.Commit), Prepare: uint64(a.Prepare)}
}

// Filter narrows the list; empty fields don't.
type Filter struct {
	PersonID  string
	AccountID string
	Act       oversight.Act
	Limit     int
	Offset    int
}

const actColumnsSQL = `
SELECT act_id, at, commit_position, prepare_position, person_id, act, subject, account_id, detail, reason, problem`

const actsSQL = `
FROM readmodel.operator_acts
WHERE ($1 = '' OR person_id = $1)
  AND ($2 = '' OR account_id = $2)
  AND ($3 = '' OR act = $3)`

const listActsSQL = actColumnsSQL + actsSQL + `
ORDER BY commit_position DESC
LIMIT $4
OFFSET $5`

const countActsSQL = `
SELECT COUNT(*)` + actsSQL

// The condition on the time bounds what a list of looks costs.
const looksSQL = actColumnsSQL + `
FROM readmodel.operator_acts
WHERE account_id = $1
  AND account_id <> ''
  AND act = 'look'
  AND at > $2
ORDER BY commit_position DESC
LIMIT $3`

const lookedSQL = `
SELECT COALESCE(MAX(at), '-infinity'::timestamptz) > $3
FROM readmodel.operator_acts
WHERE person_id = $1
  AND act = 'look'
  AND subject = $2`

// Acts lists the acts, the latest first, and says how many there are.
func (q *Reads) Acts(ctx context.Context, f Filter) ([]Act, int, error) {
	return readmodel.Page[Act](ctx, q.db, "operators' acts", countActsSQL, listActsSQL,
		[]any{f.PersonID, f.AccountID, f.Act}, f.Limit, f.Offset)
}

// Looks lists the looks into the account's data since a moment, the latest first.
func (q *Reads) Looks(ctx context.Context, accountID string, since time.Time, limit int) ([]Act, error) {
	return pgpool.List[Act](ctx, q.db, "the looks into account "+accountID, looksSQL, accountID, since, limit)
}

// Looked says that the operator gave a reason to look into the stream after a moment.
func (q *Reads) Looked(ctx context.Context, personID, stream string, after time.Time) (bool, error) {
	return readmodel.Get[bool](ctx, q.db, "a look into "+stream, lookedSQL, personID, stream, after)
}
