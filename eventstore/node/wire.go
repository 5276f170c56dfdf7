package node

import (
	"encoding/binary"
	"strconv"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"humanqa/eventstore/node/store"
)

// Events go out in the protocol's bytes, written here. As messages of the stubs, each with
// its map, they cost a tenth of a rebuild of all read models.

// Fields of event_store.client.streams.ReadResp, and of the messages in it.
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
	uuidMostBits     = protowire.Number(1)
	uuidLeastBits    = protowire.Number(2)
	streamIdentName  = protowire.Number(3)
	metadataKey      = protowire.Number(1)
	metadataValue    = protowire.Number(2)
	recordedOverhead = 192 // bytes of an event beside its texts and data, at the most
)

// encodedEvent is a ReadResp that holds an event.
type encodedEvent []byte

// encodeEvent writes an event in place of the link that led to it. Without a link the
// event is there; behind a link to nowhere it is nil.
func encodeEvent(event, link *store.Record, position int64, idAsString bool) encodedEvent {
	var read []byte
	if event != nil {
		read = appendBytes(nil, readEventEvent, encodeRecord(event, idAsString))
	}
	if link != nil {
		read = appendBytes(read, readEventLink, encodeRecord(link, idAsString))
	}
	read = appendNumber(read, readEventCommit, position)
	return appendBytes(make([]byte, 0, len(read)+8), readRespEvent, read)
}

// encodeRecord writes a RecordedEvent.
func encodeRecord(r *store.Record, idAsString bool) []byte {
	contentType := contentTypeBinary
	if r.JSON {
		contentType = contentTypeJSON
	}
	var scratch [96]byte
	b := make([]byte, 0, recordedOverhead+len(r.Stream)+len(r.Type)+len(r.Metadata)+len(r.Data))
	if idAsString {
		b = appendBytes(b, recordedID, appendBytes(scratch[:0], uuidString, r.ID.String()))
	} else {
		var half [24]byte
		bits := appendNumber(half[:0], uuidMostBits, int64(binary.BigEndian.Uint64(r.ID[:8])))
		bits = appendNumber(bits, uuidLeastBits, int64(binary.BigEndian.Uint64(r.ID[8:])))
		b = appendBytes(b, recordedID, appendBytes(scratch[:0], uuidStructured, bits))
	}
	b = appendBytes(b, recordedStream, appendBytes(scratch[:0], streamIdentName, r.Stream))
	b = appendNumber(b, recordedRevision, r.Revision)
	b = appendNumber(b, recordedPrepare, r.Position)
	b = appendNumber(b, recordedCommit, r.Position)
	b = appendMetadata(b, "type", r.Type)
	b = appendMetadata(b, "content-type", contentType)
	// .NET ticks of 100 ns, counted from the unix epoch
	b = appendMetadata(b, "created", strconv.FormatInt(r.Created*10, 10))
	b = appendBytes(b, recordedCustom, r.Metadata)
	return appendBytes(b, recordedData, r.Data)
}

// appendMetadata writes an entry of the map.
func appendMetadata(b []byte, key, value string) []byte {
	var scratch [96]byte
	return appendBytes(b, recordedMetadata, appendBytes(appendBytes(scratch[:0], metadataKey, key), metadataValue, value))
}

func appendBytes[V string | []byte](b []byte, field protowire.Number, value V) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return append(protowire.AppendVarint(b, uint64(len(value))), value...)
}

func appendNumber(b []byte, field protowire.Number, v int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), uint64(v))
}

// wireCodec sends an encoded event as it is; all other messages are gRPC's own.
type wireCodec struct{ encoding.CodecV2 }

func newWireCodec() wireCodec { return wireCodec{encoding.GetCodecV2(proto.Name)} }

func (c wireCodec) Marshal(v any) (mem.BufferSlice, error) {
	if e, ok := v.(encodedEvent); ok {
		return mem.BufferSlice{mem.SliceBuffer(e)}, nil
	}
	return c.CodecV2.Marshal(v)
}
