package store

import (
	"math"
	"strings"

	"github.com/google/uuid"
)

const (
	// tombstoned is the revision of a tombstone, and with it the last revision
	// of a stream that is gone for good.
	tombstoned = math.MaxInt64
	// NoStream is the last revision of a stream that has no event.
	NoStream = -1

	typeMetadata = "$metadata"
	// TypeStreamDeleted is the type of a tombstone, TypeLink that of an event that
	// stands for another one.
	TypeStreamDeleted = "$streamDeleted"
	TypeLink          = "$>"

	// MetaPrefix begins the name of the stream that holds a stream's metadata.
	MetaPrefix = "$$"
)

// Record is one committed event. Records are shared between the tail and every
// subscription and are never changed.
type Record struct {
	Position int64
	Revision int64
	Created  int64 // microseconds since the epoch
	ID       uuid.UUID
	JSON     bool
	Stream   string
	Type     string
	Data     []byte
	Metadata []byte
}

// MaxMessage bounds a message to a reader. It is the client's own limit for one that it gets.
const MaxMessage = 17 << 20

// Size is the memory of the record in the tail and in a page, roughly, in bytes.
func (r *Record) Size() int {
	return len(r.Data) + len(r.Metadata) + len(r.Stream) + len(r.Type) + 128
}

// IsMetaStream says that a stream holds the metadata of another one.
func IsMetaStream(name string) bool { return strings.HasPrefix(name, MetaPrefix) }

// companion is the other half of a stream and its metadata: "$$s" for s, s for
// "$$s". A decision about one needs the state of both.
func companion(name string) string {
	if IsMetaStream(name) {
		return name[len(MetaPrefix):]
	}
	return MetaPrefix + name
}

// LastRevision in a link is the last event of its stream, whichever that is.
const LastRevision = -1
