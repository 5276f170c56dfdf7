package node

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"

	"humanqa/eventstore/node/store"
)

const (
	contentTypeJSON   = "application/json"
	contentTypeBinary = "application/octet-stream"
)

// recordedEvent is an event in the protocol; nil for none.
func recordedEvent(r *store.Record, idAsString bool) *streams.ReadResp_ReadEvent_RecordedEvent {
	if r == nil {
		return nil
	}
	contentType := contentTypeBinary
	if r.JSON {
		contentType = contentTypeJSON
	}
	return &streams.ReadResp_ReadEvent_RecordedEvent{
		Id:               idToProto(r.ID, idAsString),
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.Stream)},
		StreamRevision:   uint64(r.Revision),
		CommitPosition:   uint64(r.Position),
		PreparePosition:  uint64(r.Position),
		Metadata: map[string]string{
			"type":         r.Type,
			"content-type": contentType,
			// .NET ticks of 100 ns, counted from the unix epoch
			"created": strconv.FormatInt(r.Created*10, 10),
		},
		CustomMetadata: r.Metadata,
		Data:           r.Data,
	}
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

// parseLink parses the data of a link event: "revision@stream".
func parseLink(data []byte) (stream string, revision int64, ok bool) {
	rev, name, found := strings.Cut(string(data), "@")
	if !found || name == "" {
		return "", 0, false
	}
	revision, err := strconv.ParseInt(rev, 10, 64)
	return name, revision, err == nil && revision >= store.LastRevision
}
