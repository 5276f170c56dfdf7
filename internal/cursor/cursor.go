// Package cursor is the place of an entry in a list that is ordered by time and then by
// id. It is a text, and a client sends it to ask for the next entries. It stays right when
// entries are added, and costs the same at any depth of the list.
package cursor

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Cursor is where an entry stands; the zero one is the list's beginning.
type Cursor struct {
	At time.Time // in whole microseconds, as Postgres keeps it
	ID string    // a UUID
}

// String is the cursor as clients are told it.
func (c Cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.At.UnixMicro(), 36) + "." + c.ID))
}

// farthest is later than anything that is listed, and within what Postgres takes.
var farthest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// IsBeginning says that everything in the list follows.
func (c Cursor) IsBeginning() bool { return c == Cursor{} }

// Parse reads a cursor; the empty text is the beginning.
func Parse(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, err
	}
	micros, rest, _ := strings.Cut(string(raw), ".")
	n, err := strconv.ParseInt(micros, 36, 64)
	if err != nil {
		return Cursor{}, err
	}
	id, err := uuid.Parse(rest)
	if err != nil || n < 0 || n > farthest.UnixMicro() {
		return Cursor{}, errors.New("no cursor of a list")
	}
	return Cursor{At: time.UnixMicro(n).UTC(), ID: id.String()}, nil
}
