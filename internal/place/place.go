// Package place is the place of an entry in a list that is ordered by time and
// then by id, as a text that a client can ask with for what follows. It holds
// whatever is added to the list meanwhile, and costs the same however far down
// it is.
package place

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Place is where an entry stands; the zero one is the list's beginning.
type Place struct {
	At time.Time // in whole microseconds, as Postgres keeps it
	ID string    // a UUID
}

// String is the place as clients are told it.
func (p Place) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.At.UnixMicro(), 36) + "." + p.ID))
}

// farthest is later than anything that is listed, and within what Postgres takes.
var farthest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// IsBeginning says that everything in the list follows.
func (p Place) IsBeginning() bool { return p == Place{} }

// Parse reads a place; the empty text is the beginning.
func Parse(text string) (Place, error) {
	if text == "" {
		return Place{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Place{}, err
	}
	micros, rest, _ := strings.Cut(string(raw), ".")
	n, err := strconv.ParseInt(micros, 36, 64)
	if err != nil {
		return Place{}, err
	}
	id, err := uuid.Parse(rest)
	if err != nil || n < 0 || n > farthest.UnixMicro() {
		return Place{}, errors.New("no place in a list")
	}
	return Place{At: time.UnixMicro(n).UTC(), ID: id.String()}, nil
}
