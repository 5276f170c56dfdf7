package node

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
)

const (
	contentTypeJSON   = "application/json"
	contentTypeBinary = "application/octet-stream"
)

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

func idToProto(id uuid.UUID) *shared.UUID {
	return &shared.UUID{Value: &shared.UUID_Structured_{Structured: &shared.UUID_Structured{
		MostSignificantBits:  int64(binary.BigEndian.Uint64(id[:8])),
		LeastSignificantBits: int64(binary.BigEndian.Uint64(id[8:])),
	}}}
}

// parseLink parses the data of a link: "revision@stream". What has no number is no link.
func parseLink(data []byte) (stream string, revision int64, ok bool) {
	number, stream, _ := strings.Cut(string(data), "@")
	revision, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	return stream, revision, err == nil
}
