package credits

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
)

// JobIDs are base64 in JSON, of 16 bytes an id. A close may hold 100,000 of them, and the
// first command after a restart reads them all: so they take half the bytes, and half the
// time. Version 1 had a list. Ids that are not UUIDs still form a list.
type JobIDs []string

// MarshalJSON implements json.Marshaler.
func (ids JobIDs) MarshalJSON() ([]byte, error) {
	packed := make([]byte, 0, len(ids)*len(uuid.UUID{}))
	for _, id := range ids {
		is, err := uuid.Parse(id)
		if err != nil || is.String() != id {
			return json.Marshal([]string(ids))
		}
		packed = append(packed, is[:]...)
	}
	return json.Marshal(packed)
}

// UnmarshalJSON implements json.Unmarshaler.
func (ids *JobIDs) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return json.Unmarshal(data, (*[]string)(ids))
	}
	packed := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(packed, data[1:len(data)-1])
	if err != nil || n%len(uuid.UUID{}) != 0 {
		return fmt.Errorf("the packed ids of jobs have %d bytes: %w", n, errors.Join(err, errPacked))
	}
	*ids = make(JobIDs, 0, n/len(uuid.UUID{}))
	for id := range slices.Chunk(packed[:n], len(uuid.UUID{})) {
		*ids = append(*ids, uuid.UUID(id).String())
	}
	return nil
}

var errPacked = errors.New("it is base64 of 16 bytes an id")
