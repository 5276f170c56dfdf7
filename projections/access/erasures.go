package access

import (
	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/eventstore/consumer"
	"humanqa/projections/readmodel"
)

// ErasedName is the name of an erased account.
const ErasedName = "(erased)"

// Erasures keeps the erased accounts, with the operator and the reason.
var Erasures = readmodel.New(readmodel.Spec{
	Name: "erasures", Version: 1,
	Tables:  []consumer.Table{{Name: "erasures", DDL: erasuresDDL}},
	Handles: domain.TypesOf((*account.Erased)(nil), (*account.ErasureFinished)(nil)),
	Apply:   readmodel.Each(erasureChange),
})

const erasuresDDL = `
CREATE TABLE {schema}.erasures (
    account_id  text PRIMARY KEY,
    erased_at   timestamptz NOT NULL,
    erased_by   text NOT NULL,
    reason      text NOT NULL,
    finished_at timestamptz -- nothing was left
);
`

const insertErasureSQL = `
INSERT INTO {schema}.erasures (account_id, erased_at, erased_by, reason)
VALUES ($1, $2, $3, $4)`

const finishErasureSQL = `
UPDATE {schema}.erasures
SET finished_at = $2
WHERE account_id = $1`

func erasureChange(r domain.Recorded) (query string, args []any) {
	at := readmodel.Moment(r.Meta.Time)
	switch e := r.Event.(type) {
	case *account.Erased:
		return insertErasureSQL, []any{r.StreamID(), at, e.By, e.Reason}
	case *account.ErasureFinished:
		return finishErasureSQL, []any{r.StreamID(), at}
	}
	return "", nil
}
