package node

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
)

const (
	// tombstoned is the revision of a tombstone, and with it the last revision
	// of a stream that is gone for good.
	tombstoned = math.MaxInt64
	// noStream is the last revision of a stream that has no event.
	noStream = -1

	typeMetadata      = "$metadata"
	typeStreamDeleted = "$streamDeleted"
	typeLink          = "$>"

	contentTypeJSON   = "application/json"
	contentTypeBinary = "application/octet-stream"

	metaPrefix = "$$"
)

// record is one committed event. Records are shared between the tail and every
// subscription and are never changed.
type record struct {
	position int64
	revision int64
	created  int64 // microseconds since the epoch
	id       uuid.UUID
	json     bool
	stream   string
	kind     string
	data     []byte
	metadata []byte
}

// size is what the record weighs in the tail and in a page, roughly.
func (r *record) size() int {
	return len(r.data) + len(r.metadata) + len(r.stream) + len(r.kind) + 128
}

func isMetaStream(name string) bool { return strings.HasPrefix(name, metaPrefix) }

// companion is the other half of a stream and its metadata: "$$s" for s, s for
// "$$s". A decision about one needs the state of both.
func companion(name string) string {
	if isMetaStream(name) {
		return name[len(metaPrefix):]
	}
	return metaPrefix + name
}

func idFromProto(id *shared.UUID) (uuid.UUID, bool) {
	switch v := id.GetValue().(type) {
	case *shared.UUID_Structured_:
		var out uuid.UUID
		binary.BigEndian.PutUint64(out[:8], uint64(v.Structured.GetMostSignificantBits()))
		binary.BigEndian.PutUint64(out[8:], uint64(v.Structured.GetLeastSignificantBits()))
		return out, out != uuid.Nil
	case *shared.UUID_String_:
		out, err := uuid.Parse(v.String_)
		return out, err == nil && out != uuid.Nil
	}
	return uuid.Nil, false
}

func idToProto(id uuid.UUID, asString bool) *shared.UUID {
	if asString {
		return &shared.UUID{Value: &shared.UUID_String_{String_: id.String()}}
	}
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// lastRevision in a link is the last event of its stream, whichever that is.
const lastRevision = -1

// linkTarget parses the data of a link event: "revision@stream".
func linkTarget(data []byte) (stream string, revision int64, ok bool) {
	rev, name, found := strings.Cut(string(data), "@")
	if !found || name == "" {
		return "", 0, false
	}
	revision, err := strconv.ParseInt(rev, 10, 64)
	return name, revision, err == nil && revision >= lastRevision
}
