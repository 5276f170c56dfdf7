package eventstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/host"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/origin"
	"humanqa/domain/oversight"
	"humanqa/domain/person"
	"humanqa/domain/pool"
	"humanqa/domain/project"
	"humanqa/domain/session"
)

// registry knows every event type by its stable name. It is built once and
// only read afterwards.
var registry = register(
	account.Specs(),
	checker.Specs(),
	credits.Specs(),
	project.Specs(),
	job.Specs(),
	host.Specs(),
	session.Specs(),
	loop.Specs(),
	origin.Specs(),
	person.Specs(),
	pool.Specs(),
	oversight.Specs(),
)

// register composes the aggregates' events. A name that occurs twice, or a
// version that no chain of upcasters reaches, is a mistake of the programmer.
func register(groups ...[]domain.EventSpec) map[string]domain.EventSpec {
	all := make(map[string]domain.EventSpec)
	for _, group := range groups {
		for _, spec := range group {
			name := spec.New().EventType()
			if _, taken := all[name]; taken {
				panic("eventstore: two events are named " + name)
			}
			spec.Version = max(spec.Version, 1)
			for v := 1; v < spec.Version; v++ {
				if spec.Upcast[v] == nil {
					panic(fmt.Sprintf("eventstore: %s has no upcaster from version %d", name, v))
				}
			}
			all[name] = spec
		}
	}
	return all
}

// Types lists the names of all event types this binary knows, sorted.
func Types() []string { return slices.Sorted(maps.Keys(registry)) }

// Version gives the schema version written today for an event type, 0 if the
// type is not known.
func Version(eventType string) int { return registry[eventType].Version }

// DecodeError says that an event of a known type could not be read. A reader never
// skips such an event: it stops there.
type DecodeError struct {
	domain.Recorded     // the log's own facts of the event, without Event and Meta
	Version         int // of the type, as its metadata have it; 0 where they cannot be read
	Err             error
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s at %s@%d (position %s): %v", e.Type, e.Stream, e.Revision, e.Position, e.Err)
}

// Unwrap gives the cause.
func (e *DecodeError) Unwrap() error { return e.Err }

// Encode gives the JSON of an event and of its metadata, as they are stored. A text that
// no read model could show is refused (domain.KindInvalid).
func Encode(e domain.NewEvent) (data, meta []byte, err error) {
	if e.Event == nil {
		return nil, nil, errors.New("encode: no event")
	}
	name := e.Event.EventType()
	spec, known := registry[name]
	if !known {
		return nil, nil, fmt.Errorf("encode %s: the type is not registered", name)
	}
	if data, err = domain.EncodeJSON(e.Event); err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", name, err)
	}
	e.Meta.Schema = spec.Version
	if meta, err = domain.EncodeJSON(e.Meta); err != nil {
		return nil, nil, fmt.Errorf("encode metadata of %s: %w", name, err)
	}
	for _, text := range [][]byte{data, meta} {
		if err := storable(text); err != nil {
			return nil, nil, fmt.Errorf("encode %s: %w", name, err)
		}
	}
	return data, meta, nil
}

// Decode reads a stored event. An unknown type gives no event and no error,
// with the readable part of the metadata. Unknown JSON fields are ignored, old
// versions are upcast, versions of a newer binary are refused.
func Decode(eventType string, data, meta []byte) (domain.Event, domain.Metadata, error) {
	var (
		m       domain.Metadata
		metaErr error
	)
	if len(meta) > 0 {
		metaErr = json.Unmarshal(meta, &m)
	}
	spec, known := registry[eventType]
	if !known {
		return nil, m, nil
	}
	if metaErr != nil {
		return nil, m, fmt.Errorf("metadata: %w", metaErr)
	}
	version := max(m.Schema, 1)
	if version > spec.Version {
		return nil, m, fmt.Errorf("schema version %d, and this binary knows %d: %w", version, spec.Version, domain.ErrNewer)
	}
	var err error
	for ; version < spec.Version; version++ {
		if data, err = spec.Upcast[version](data); err != nil {
			return nil, m, fmt.Errorf("upcast from version %d: %w", version, err)
		}
	}
	event := spec.New()
	if err := json.Unmarshal(data, event); err != nil {
		return nil, m, err
	}
	return event, m, nil
}

// RawEvent is an event as the log stores it.
type RawEvent struct {
	ID       uuid.UUID
	Stream   string
	Revision uint64
	Position domain.Position
	Type     string
	Created  time.Time // by the log's clock, UTC
	Data     []byte    // JSON
	Meta     []byte    // JSON
	Binary   bool      // the log keeps Data as octets, not as JSON
	Copied   time.Time // when this log took it from another one, which had Created it; else zero

	data        []byte // the whole data of an event whose data stand in parts, or are sealed
	texts       []byte // the opened texts, behind their salt
	sealedParts bool   // the data in its parts have sealed texts
}

// unreadable begins the data that the embedded node shows of an event that its older version
// took, and that no message can carry.
var unreadable = []byte(`{"$unreadable":`)

// Unreadable is the error of such an event: the log shows its place, its size and the sums
// of its data and metadata.
func (r RawEvent) Unreadable() error {
	if !bytes.HasPrefix(r.Data, unreadable) {
		return nil
	}
	return fmt.Errorf("it is too large for a message of the log, which shows %s", r.Data)
}

// Recorded is the event undecoded: without Event and Meta.
func (r RawEvent) Recorded() domain.Recorded { return r.recorded(true) }

// recorded computes the sums of the stored bytes only if sums is set.
func (r RawEvent) recorded(sums bool) domain.Recorded {
	recorded := domain.Recorded{
		ID: r.ID, Stream: r.Stream, Revision: r.Revision, Position: r.Position, Type: r.Type,
		Stored: domain.Stored{Created: r.Created, Copied: r.Copied, Binary: r.Binary},
	}
	if sums {
		recorded.Stored.Data, recorded.Stored.Meta = sha256.Sum256(r.Data), sha256.Sum256(r.Meta)
	}
	return recorded
}

// Decode reads the event; the error is a *DecodeError.
func (r RawEvent) Decode() (domain.Recorded, error) { return r.decode(true) }

func (r RawEvent) decode(sums bool) (domain.Recorded, error) {
	recorded := r.recorded(sums)
	event, meta, err := Decode(r.Type, r.Whole(), r.Meta)
	switch unreadable := r.Unreadable(); {
	case unreadable != nil && Version(r.Type) > 0:
		err = unreadable
	case err == nil && r.data == nil && r.partsMeta().Parts > 0:
		err = errParts
	}
	if err != nil {
		return domain.Recorded{}, &DecodeError{Recorded: recorded, Version: meta.Schema, Err: err}
	}
	recorded.Meta, recorded.Event = meta, event
	return recorded, nil
}
