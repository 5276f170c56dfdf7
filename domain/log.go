package domain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Position is a place in the log's total order. Commit decides; Prepare is
// kept because the protocol carries it.
type Position struct {
	Commit  uint64
	Prepare uint64
}

// Compare orders positions as the log does.
func (p Position) Compare(q Position) int {
	if c := cmp.Compare(p.Commit, q.Commit); c != 0 {
		return c
	}
	return cmp.Compare(p.Prepare, q.Prepare)
}

// Max gives the later of two positions.
func (p Position) Max(q Position) Position {
	if p.Compare(q) < 0 {
		return q
	}
	return p
}

func (p Position) String() string { return fmt.Sprintf("%d/%d", p.Commit, p.Prepare) }

// Event is a fact. Its type is a stable name such as "job.created", never the
// name of a Go type.
type Event interface {
	EventType() string
}

// MoreFollows is an event that is not the last one of its command. Another event follows
// at once, in another stream, before the caller gets an answer. A consumer of the log may
// wait a moment for that event.
type MoreFollows interface {
	Event
	// MoreFollows marks the type.
	MoreFollows()
}

// TypesOf lists the types of events; nil pointers will do.
func TypesOf(events ...Event) []string {
	types := make([]string, len(events))
	for i, e := range events {
		types[i] = e.EventType()
	}
	return types
}

// TypesIn lists the types of all events of an aggregate.
func TypesIn(specs []EventSpec) []string {
	types := make([]string, len(specs))
	for i, spec := range specs {
		types[i] = spec.New().EventType()
	}
	return types
}

// Metadata travels beside each event.
type Metadata struct {
	// CommandID is the command that decided the event.
	CommandID uuid.UUID `json:"commandId"`
	// CorrelationID is the x-request-id of the request that started the chain of events.
	CorrelationID string `json:"correlationId,omitempty"`
	// CausationID is the id of the event that caused the command; empty when
	// a caller did.
	CausationID string `json:"causationId,omitempty"`
	// Trace is the traceparent (W3C Trace Context) of the request that started the chain
	// of events; empty without traces.
	Trace string `json:"trace,omitempty"`
	// Actor is the author: "key:<id>", "checker:<id>", "operator", "operator:<person
	// id>", "policy:<name>".
	Actor     string    `json:"actor"`
	AccountID string    `json:"accountId,omitempty"`
	Time      time.Time `json:"time"`
	Schema    int       `json:"schema"`
}

// NewEvent is an event on its way into the log.
type NewEvent struct {
	ID    uuid.UUID
	Event Event
	Meta  Metadata
}

// Recorded is an event that the log holds.
type Recorded struct {
	ID       uuid.UUID
	Stream   string
	Revision uint64
	Position Position
	Type     string
	Meta     Metadata
	// Event is nil when this binary does not know the type; consumers count
	// such events and pass over them.
	Event Event
	// Disowned events count for nothing, and have no Event: a person put them into the log
	// past the service, and an operator said so.
	Disowned bool
	// Stored holds the log's own facts of an event.
	Stored Stored
}

// Stored has the facts that prove an event: when the log took it, and the SHA-256 of its
// data and its metadata, byte by byte. A log in memory leaves it zero.
type Stored struct {
	Created    time.Time // UTC
	Data, Meta [32]byte
	Binary     bool // the data are kept as octets, not as JSON
	// Copied is when the event came into this log from another one, which had
	// taken it at Created; zero unless it did. It proves nothing.
	Copied time.Time
}

// StreamID is the id behind the stream's category: the job's of a job's event.
func (r Recorded) StreamID() string {
	_, id, _ := strings.Cut(r.Stream, "-")
	return id
}

// ExpectedRevision is a writer's assumption about a stream: NoStream, or the revision of
// its last event.
type ExpectedRevision int64

// NoStream expects that the stream has no event yet.
const NoStream ExpectedRevision = -1

// AppendResult is the place of the last event of an append.
type AppendResult struct {
	Revision uint64
	Position Position
}

// The outcomes of an append that a command handler must tell apart.
var (
	// ErrWrongRevision: another process wrote first; reload the tail and decide again.
	ErrWrongRevision = errors.New("wrong expected revision")
	// ErrUnknownOutcome: the write may or may not have happened; only the same
	// stream, revision, ids and bytes may be sent again.
	ErrUnknownOutcome = errors.New("unknown outcome of an append")
	// ErrRefused: the log understood the append and will not take it, however
	// often it is sent (too large, not permitted). Nothing was written.
	ErrRefused = errors.New("append refused")
)

// Log is the part of the event store that the domain needs. Package eventstore implements
// it.
type Log interface {
	// Append writes all events or none. It fails with ErrWrongRevision,
	// ErrRefused, ErrUnknownOutcome (after its own resends), or an error that
	// says that nothing was written.
	Append(ctx context.Context, stream string, expected ExpectedRevision, events []NewEvent) (AppendResult, error)
	// Load calls each for every event of the stream from the given revision on, in order.
	// A stream that does not exist has no events. An error means that events are missing:
	// no decision may rest on the others.
	Load(ctx context.Context, stream string, from uint64, each func(Recorded) error) error
	// LoadTail gives the events of the stream from the last one of a type on, in order,
	// or all if it has none of the type. If there are more events than most, ok is false.
	// It reads backwards, so its cost is that of the events that it gives.
	LoadTail(ctx context.Context, stream, eventType string, most int) (events []Recorded, ok bool, err error)
}

// EventSpec tells the codec how one event type is stored.
type EventSpec struct {
	// New gives a pointer to decode into.
	New func() Event
	// Version is the schema version that is written today; 0 means 1.
	Version int
	// Upcast turns the JSON of version v into the JSON of version v+1, by v.
	Upcast map[int]func([]byte) ([]byte, error)
	// Sealed are the fields whose texts are sealed (WithSealedTexts).
	Sealed map[string]Sealed
}

// Specs are the specs of events that have had one version.
func Specs(events ...Event) []EventSpec {
	specs := make([]EventSpec, len(events))
	for i, e := range events {
		pointee := reflect.TypeOf(e).Elem()
		specs[i].New = func() Event { return reflect.New(pointee).Interface().(Event) }
	}
	return specs
}

// WithSealedTexts are the specs of events whose fields with the tag `sealed` are sealed since
// version 2 (decisions, "Erasure of one subject"). Their JSON is the same once they are open. A binary
// that knows no sealed texts must not take the marks for texts, and leaves such events.
func WithSealedTexts(events ...Event) []EventSpec { return sealing(Second(events...), events) }

// SealedFromTheFirst are the specs of events whose texts never stood in the clear.
func SealedFromTheFirst(events ...Event) []EventSpec { return sealing(Specs(events...), events) }

func sealing(specs []EventSpec, events []Event) []EventSpec {
	for i, e := range events {
		specs[i].Sealed = SealedFields(e)
	}
	return specs
}

// Second are the specs of events whose second version is decoded like the first. A binary
// that knows only the first version would misread them.
func Second(events ...Event) []EventSpec {
	specs := Specs(events...)
	same := func(data []byte) ([]byte, error) { return data, nil }
	for i := range specs {
		specs[i].Version, specs[i].Upcast = 2, map[int]func([]byte) ([]byte, error){1: same}
	}
	return specs
}
