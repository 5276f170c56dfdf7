package node

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"humanqa/eventstore/node/store"
)

// Each event that an append may carry fits into a reader's message, by itself and as a link
// to the largest one or the target of the largest link.
func TestNoEventThatIsTakenIsTooLargeForAMessage(t *testing.T) {
	t.Parallel()
	many := bytes.Repeat([]byte{0xff}, maxMessage)
	largest := func(stream, kind string, size int) *store.Record {
		return &store.Record{
			Position: math.MaxInt64, Revision: math.MaxInt64, Created: math.MinInt64 / 10, ID: uuid.Max,
			Stream: stream, Type: kind, Metadata: many[:size-len(stream)-len(kind)],
		}
	}
	long := strings.Repeat("s", maxStreamName)
	target, link := largest(long, long, MaxAppendSize), largest(long, store.TypeLink, maxLinkSize)
	rapid.Check(t, func(t *rapid.T) {
		near := func(label string, bounds ...int) int {
			return max(0, rapid.SampledFrom(bounds).Draw(t, label)+rapid.IntRange(-300, 300).Draw(t, label+" beside it"))
		}
		stream := strings.Repeat("n", rapid.IntRange(1, maxStreamName).Draw(t, "stream"))
		kind := rapid.SampledFrom([]string{store.TypeLink, "t", long}).Draw(t, "type")
		e := &streams.AppendReq_ProposedMessage{
			Id:       &shared.UUID{Value: &shared.UUID_String_{String_: uuid.Max.String()}},
			Metadata: map[string]string{"type": kind, "content-type": contentTypeBinary},
			Data:     many[:near("data", 0, maxLinkSize, MaxAppendSize/2, MaxAppendSize)], CustomMetadata: many[:near("metadata", 0, maxLinkSize, MaxAppendSize/2)],
		}
		n := &Node{config: Config{MaxAppendSize: MaxAppendSize}}
		if n.newAppend(t.Context(), stream, store.ExpectAny).propose(e) != nil {
			return
		}
		r := &store.Record{
			Position: math.MaxInt64, Revision: math.MaxInt64, Created: math.MinInt64 / 10, ID: uuid.Max,
			Stream: stream, Type: kind, Data: e.Data, Metadata: e.CustomMetadata,
		}
		messages := []encodedEvent{encodeEvent(r, nil, math.MaxInt64, true), encodeEvent(r, link, math.MaxInt64, true)}
		if kind == store.TypeLink {
			messages[1] = encodeEvent(target, r, math.MaxInt64, true)
		}
		for i, m := range messages {
			if len(m) > maxMessage {
				t.Fatalf("message %d has %d bytes", i, len(m))
			}
		}
	})
}
