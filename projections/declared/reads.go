package declared

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const servedSQL = `
SELECT row_to_json(r)::text
FROM (
    SELECT {columns}
    FROM declared.{table}
    WHERE account_id = $1
    ORDER BY {order}
    LIMIT $2 OFFSET $3) r`

// Served gives an account's rows of a projection that serves some, as JSON objects. more says
// that further rows follow.
func Served(ctx context.Context, db *sqlx.DB, name, accountID string, limit, offset int) (rows []json.RawMessage, more bool, err error) {
	files, err := List(ctx, db)
	if err != nil {
		return nil, false, err
	}
	for _, f := range files {
		if f.Name != name || f.Serve.Table == "" {
			continue
		}
		query := strings.NewReplacer("{columns}", strings.Join(f.Serve.Columns, ", "), "{table}", f.Serve.Table,
			"{order}", strings.Join(f.Serve.Order, ", ")).Replace(servedSQL)
		texts, err := pgpool.List[string](ctx, db, "the rows of "+name, query, accountID, limit+1, offset)
		if missing, ok := errors.AsType[*pq.Error](err); ok && missing.Code.Class() == "42" { // no such table or column yet
			return nil, false, domain.Unavailable(fmt.Errorf("the rows of %s are not built yet", name)).WithHint("try again in a minute")
		}
		if err != nil {
			return nil, false, err
		}
		more = len(texts) > limit
		rows = make([]json.RawMessage, min(len(texts), limit))
		for i := range rows {
			rows[i] = json.RawMessage(texts[i])
		}
		return rows, more, nil
	}
	return nil, false, domain.NotFound("analytics " + name).WithHint("operators declare projections that serve rows")
}
