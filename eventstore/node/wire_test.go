package node

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"humanqa/eventstore/node/store"
	"humanqa/internal/testing/must"
)

// recordedEvent is an event as the stubs have it; nil for none.
func recordedEvent(r *store.Record, idAsString bool) *streams.ReadResp_ReadEvent_RecordedEvent {
	if r == nil {
		return nil
	}
	contentType := contentTypeBinary
	if r.JSON {
		contentType = contentTypeJSON
	}
	id := idToProto(r.ID)
	if idAsString {
		id = &shared.UUID{Value: &shared.UUID_String_{String_: r.ID.String()}}
	}
	return &streams.ReadResp_ReadEvent_RecordedEvent{
		Id:               id,
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.Stream)},
		StreamRevision:   uint64(r.Revision),
		CommitPosition:   uint64(r.Position),
		PreparePosition:  uint64(r.Position),
		Metadata: map[string]string{
			"type": r.Type, "content-type": contentType, "created": strconv.FormatInt(r.Created*10, 10),
		},
		CustomMetadata: r.Metadata,
		Data:           r.Data,
	}
}

// readResp is the answer as the stubs have it.
func readResp(event, link *store.Record, position int64, idAsString bool) *streams.ReadResp {
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: &streams.ReadResp_ReadEvent{
		Event: recordedEvent(event, idAsString), Link: recordedEvent(link, idAsString),
		Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: uint64(position)},
	}}}
}

func TestAnEncodedEventIsTheProtocols(t *testing.T) {
	t.Parallel()
	records := []*store.Record{
		nil,
		{Position: 1, Stream: "s", Type: "k"},
		{
			Position: 300, Revision: 2, Created: 1_700_000_000_000_001, ID: uuid.New(), JSON: true, Stream: "job-1",
			Type: "job.created", Data: []byte(`{}`), Metadata: []byte(`{"a":1}`),
		},
		{
			Position: math.MaxInt64, Revision: math.MaxInt64, Created: -5, ID: uuid.Max, Stream: "ströme",
			Type: store.TypeStreamDeleted, Data: make([]byte, 70_000),
		},
		{Position: 128, Revision: 127, ID: uuid.UUID{15: 1}, Stream: strings.Repeat("x", 1024), Type: "k", Metadata: []byte{0}},
	}
	for _, event := range records {
		for _, link := range records {
			for _, asString := range []bool{false, true} {
				want := readResp(event, link, 300, asString)
				var got streams.ReadResp
				must.NoError(t, proto.Unmarshal(encodeEvent(event, link, 300, asString), &got))
				if !proto.Equal(&got, want) {
					t.Errorf("got %v\nwant %v", &got, want)
				}
			}
		}
	}
}

// BenchmarkEncode compares one small event as it is encoded here and by the stubs.
func BenchmarkEncode(b *testing.B) {
	e := &store.Record{
		Position: 123_456, Revision: 7, Created: 1_700_000_000_000_001, ID: uuid.New(), JSON: true, Stream: "job-" + uuid.NewString(),
		Type: "job.item_checked", Data: bytes.Repeat([]byte("d"), 200), Metadata: bytes.Repeat([]byte("m"), 200),
	}
	codec := newWireCodec()
	for name, answer := range map[string]func() any{
		"here":  func() any { return encodeEvent(e, nil, e.Position, false) },
		"stubs": func() any { return readResp(e, nil, e.Position, false) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data, err := codec.Marshal(answer())
				must.NoError(b, err)
				data.Free()
			}
		})
	}
}
