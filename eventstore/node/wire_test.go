package node

import (
	"bytes"
	"math"
	"strconv"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"humanqa/internal/must"
)

// message is the event as the stubs would have it.
func (r *record) message(idAsString bool) *streams.ReadResp_ReadEvent_RecordedEvent {
	contentType := contentTypeBinary
	if r.json {
		contentType = contentTypeJSON
	}
	return &streams.ReadResp_ReadEvent_RecordedEvent{
		Id:               idToProto(r.id, idAsString),
		StreamIdentifier: &shared.StreamIdentifier{StreamName: []byte(r.stream)},
		StreamRevision:   uint64(r.revision),
		CommitPosition:   uint64(r.position),
		PreparePosition:  uint64(r.position),
		Metadata: map[string]string{
			"type":         r.kind,
			"content-type": contentType,
			// .NET ticks of 100 ns, counted from the unix epoch
			"created": strconv.FormatInt(r.created*10, 10),
		},
		CustomMetadata: r.metadata,
		Data:           r.data,
	}
}

// responded is the answer as the stubs would have it.
func responded(event, link *record, position int64, idAsString bool) *streams.ReadResp {
	out := &streams.ReadResp_ReadEvent{Position: &streams.ReadResp_ReadEvent_CommitPosition{CommitPosition: uint64(position)}}
	if event != nil {
		out.Event = event.message(idAsString)
	}
	if link != nil {
		out.Link = link.message(idAsString)
	}
	return &streams.ReadResp{Content: &streams.ReadResp_Event{Event: out}}
}

func TestWhatIsWrittenByHandIsTheProtocols(t *testing.T) {
	t.Parallel()
	records := []*record{
		nil,
		{position: 1, stream: "s", kind: "k"},
		{position: 300, revision: 2, created: 1_700_000_000_000_001, id: uuid.New(), json: true, stream: "job-1", kind: "job.created", data: []byte(`{}`), metadata: []byte(`{"a":1}`)},
		{position: math.MaxInt64, revision: tombstoned, created: -5, id: uuid.Max, stream: "ströme", kind: typeStreamDeleted, data: make([]byte, 70_000)},
		{position: 128, revision: 127, id: uuid.UUID{15: 1}, stream: string(bytes.Repeat([]byte("x"), maxStreamName)), kind: "k", metadata: []byte{0}},
	}
	for _, event := range records {
		for _, link := range records {
			for _, asString := range []bool{false, true} {
				want := responded(event, link, 300, asString)
				var got streams.ReadResp
				written := encodeEvent(event, link, 300, asString)
				if err := proto.Unmarshal(written, &got); err != nil || !proto.Equal(&got, want) {
					t.Errorf("got %v, %v\nwant %v", &got, err, want)
				}
				if size := proto.Size(want); len(written) != size {
					t.Errorf("%d bytes, want %d", len(written), size)
				}
			}
		}
	}
}

// BenchmarkEncode compares the bytes of one small event, written by hand and by
// the stubs.
func BenchmarkEncode(b *testing.B) {
	e := &record{
		position: 123_456, revision: 7, created: 1_700_000_000_000_001, id: uuid.New(), json: true, stream: "job-" + uuid.NewString(),
		kind: "job.item_checked", data: bytes.Repeat([]byte("d"), 200), metadata: bytes.Repeat([]byte("m"), 200),
	}
	codec := newWireCodec()
	for name, answer := range map[string]func() any{
		"hand":  func() any { return encodeEvent(e, nil, e.position, false) },
		"stubs": func() any { return responded(e, nil, e.position, false) },
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
