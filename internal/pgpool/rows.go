package pgpool

import (
	"database/sql/driver"
	"encoding/json"
)

// Rows is many rows as one parameter, for json_to_recordset: fields are columns, under
// their JSON names.
func Rows[T any](list []T) driver.Valuer { return rows[T](list) }

type rows[T any] []T

// Value implements driver.Valuer.
func (r rows[T]) Value() (driver.Value, error) {
	if r == nil {
		return "[]", nil // null is no list
	}
	text, err := json.Marshal([]T(r))
	return string(text), err
}
