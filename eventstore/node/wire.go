package node

import (
	"encoding/binary"
	"strconv"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Events go out in the protocol's bytes, written here: a message of the stubs
// for each, with its map and five pointers, takes three times as long to make and
// to marshal, and reads are mostly that.

// Fields of event_store.client.streams.ReadResp and of what is in it.
const (
	readRespEvent = protowire.Number(1)

	readEventEvent  = protowire.Number(1)
	readEventLink   = protowire.Number(2)
	readEventCommit = protowire.Number(3)

	recordedID       = protowire.Number(1)
	recordedStream   = protowire.Number(2)
	recordedRevision = protowire.Number(3)
	recordedPrepare  = protowire.Number(4)
	recordedCommit   = protowire.Number(5)
	recordedMetadata = protowire.Number(6)
	recordedCustom   = protowire.Number(7)
	recordedData     = protowire.Number(8)
	uuidStructured   = protowire.Number(1)
	uuidString       = protowire.Number(2)
	structuredMost   = protowire.Number(1)
	structuredLeast  = protowire.Number(2)
	streamIdentName  = protowire.Number(3)
	mapKey           = protowire.Number(1)
	mapValue         = protowire.Number(2)
)

const (
	uuidText = 36

	metadataType    = "type"
	metadataContent = "content-type"
	metadataCreated = "created"
)

// encodedEvent is a ReadResp of an event, in bytes.
type encodedEvent []byte

// encodeEvent writes an event in place of the link that led to it. Without a
// link the event is there; behind a link to nowhere it is nil.
func encodeEvent(event, link *record, position int64, idAsString bool) encodedEvent {
	var of [2]wireRecord
	inner := protowire.SizeTag(readEventCommit) + protowire.SizeVarint(uint64(position))
	for i, r := range [...]*record{event, link} {
		if r != nil {
			of[i].measure(r, idAsString)
			inner += sizeBytes(readEventEvent, of[i].size)
		}
	}
	out := make([]byte, 0, sizeBytes(readRespEvent, inner))
	out = appendHead(out, readRespEvent, inner)
	for i, field := range [...]protowire.Number{readEventEvent, readEventLink} {
		if of[i].record != nil {
			out = of[i].append(appendHead(out, field, of[i].size))
		}
	}
	return appendVarint(out, readEventCommit, uint64(position))
}

// wireRecord is a RecordedEvent that is measured and can be written.
type wireRecord struct {
	*record

	size    int
	content string
	// What has to be made of a record's fields, with its room.
	id, created           []byte
	idBytes, createdBytes [40]byte
}

func (w *wireRecord) measure(r *record, idAsString bool) {
	w.record = r
	if idAsString {
		w.id = appendHead(w.idBytes[:0], uuidString, uuidText)
		w.id = append(w.id, r.id.String()...)
	} else {
		most, least := binary.BigEndian.Uint64(r.id[:8]), binary.BigEndian.Uint64(r.id[8:])
		w.id = appendHead(w.idBytes[:0], uuidStructured, sizeVarint(structuredMost, most)+sizeVarint(structuredLeast, least))
		w.id = appendVarintUnlessZero(w.id, structuredMost, most)
		w.id = appendVarintUnlessZero(w.id, structuredLeast, least)
	}
	// .NET ticks of 100 ns, counted from the unix epoch
	w.created = strconv.AppendInt(w.createdBytes[:0], r.created*10, 10)
	if w.content = contentTypeBinary; r.json {
		w.content = contentTypeJSON
	}
	w.size = sizeBytes(recordedID, len(w.id)) +
		sizeBytes(recordedStream, sizeBytes(streamIdentName, len(r.stream))) +
		sizeVarint(recordedRevision, uint64(r.revision)) +
		sizeVarint(recordedPrepare, uint64(r.position)) +
		sizeVarint(recordedCommit, uint64(r.position)) +
		sizeBytes(recordedMetadata, sizeEntry(len(metadataType), len(r.kind))) +
		sizeBytes(recordedMetadata, sizeEntry(len(metadataContent), len(w.content))) +
		sizeBytes(recordedMetadata, sizeEntry(len(metadataCreated), len(w.created)))
	if len(r.metadata) > 0 {
		w.size += sizeBytes(recordedCustom, len(r.metadata))
	}
	if len(r.data) > 0 {
		w.size += sizeBytes(recordedData, len(r.data))
	}
}

func (w *wireRecord) append(b []byte) []byte {
	b = append(appendHead(b, recordedID, len(w.id)), w.id...)
	b = appendHead(b, recordedStream, sizeBytes(streamIdentName, len(w.stream)))
	b = append(appendHead(b, streamIdentName, len(w.stream)), w.stream...)
	b = appendVarintUnlessZero(b, recordedRevision, uint64(w.revision))
	b = appendVarintUnlessZero(b, recordedPrepare, uint64(w.position))
	b = appendVarintUnlessZero(b, recordedCommit, uint64(w.position))
	b = appendEntry(b, metadataType, w.kind)
	b = appendEntry(b, metadataContent, w.content)
	b = appendEntry(b, metadataCreated, w.created)
	if len(w.metadata) > 0 {
		b = append(appendHead(b, recordedCustom, len(w.metadata)), w.metadata...)
	}
	if len(w.data) > 0 {
		b = append(appendHead(b, recordedData, len(w.data)), w.data...)
	}
	return b
}

// sizeBytes is how long a field of n bytes is.
func sizeBytes(field protowire.Number, n int) int {
	return protowire.SizeTag(field) + protowire.SizeBytes(n)
}

// sizeVarint is how long a number is that is left out where it is zero.
func sizeVarint(field protowire.Number, v uint64) int {
	if v == 0 {
		return 0
	}
	return protowire.SizeTag(field) + protowire.SizeVarint(v)
}

func sizeEntry(key, value int) int { return sizeBytes(mapKey, key) + sizeBytes(mapValue, value) }

// appendHead begins a field of n bytes.
func appendHead(b []byte, field protowire.Number, n int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(n))
}

func appendEntry[V string | []byte](b []byte, key string, value V) []byte {
	b = appendHead(b, recordedMetadata, sizeEntry(len(key), len(value)))
	b = append(appendHead(b, mapKey, len(key)), key...)
	return append(appendHead(b, mapValue, len(value)), value...)
}

func appendVarintUnlessZero(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return appendVarint(b, field, v)
}

// wireCodec passes on what is encoded, and leaves the rest to gRPC's own.
type wireCodec struct{ encoding.CodecV2 }

func newWireCodec() wireCodec { return wireCodec{encoding.GetCodecV2(proto.Name)} }

func (c wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(encodedEvent); ok {
		return mem.BufferSlice{mem.SliceBuffer(e)}, nil
	}
	return c.CodecV2.Marshal(v)
}
