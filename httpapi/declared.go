package httpapi

import (
	"encoding/json"
	"net/http"

	"humanqa/httpapi/wire"
	"humanqa/projections/declared"
)

// declaredPage is a part of an account's rows. Each is an object with the columns that the
// file names.
type declaredPage struct {
	Rows       []json.RawMessage `json:"rows"`
	Limit      int               `json:"limit"`
	Offset     int               `json:"offset"`
	NextOffset *int              `json:"nextOffset"` // null at the end
}

// maxRows is the most of a page, and maxRowOffset is beyond all that a projection may keep.
const (
	maxRows      = 1000
	maxRowOffset = 10_000_000
)

// getDeclared is GET /v1/analytics/:name: the account's own rows of a declared projection.
func (a *API) getDeclared(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	out := declaredPage{Limit: q.Integer("limit", 100, 1, maxRows), Offset: q.Integer("offset", 0, 0, maxRowOffset)}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	var more bool
	var err error
	out.Rows, more, err = declared.Served(r.Context(), a.Lent, r.Vars["name"], r.Caller.AccountID, out.Limit, out.Offset)
	if more {
		out.NextOffset = new(out.Offset + out.Limit)
	}
	return wire.ReplyUnless(err, http.StatusOK, out)
}
