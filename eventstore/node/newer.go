package node

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields that the protocol got after the pinned client's stubs were generated.
// Newer clients wait for ever for a CaughtUp without them. They are written as
// fields the stubs don't know, which older clients pass over.
const (
	caughtUpTimestamp = protowire.Number(1)
	caughtUpRevision  = protowire.Number(2)
	caughtUpPosition  = protowire.Number(3)

	checkpointTimestamp = protowire.Number(3)

	// of a google.protobuf.Timestamp
	timestampSeconds = protowire.Number(1)
	timestampNanos   = protowire.Number(2)

	// of a position in $all
	positionCommit  = protowire.Number(1)
	positionPrepare = protowire.Number(2)
)

// resumePoint is where a subscription may be resumed: behind a revision of a stream,
// or behind a position of $all. None is written while nothing stands before it.
type resumePoint struct {
	ofAll bool
	at    int64
}

func afterRevision(revision int64) resumePoint { return resumePoint{at: revision} }
func afterPosition(position int64) resumePoint { return resumePoint{ofAll: true, at: position} }

func (p resumePoint) appendFields(b []byte) []byte {
	switch {
	case p.ofAll && p.at > 0:
		var position []byte
		position = appendVarint(position, positionCommit, uint64(p.at))
		position = appendVarint(position, positionPrepare, uint64(p.at))
		b = protowire.AppendTag(b, caughtUpPosition, protowire.BytesType)
		b = protowire.AppendBytes(b, position)
	case !p.ofAll && p.at >= 0:
		b = appendVarint(b, caughtUpRevision, uint64(p.at))
	}
	return b
}

func appendTimestamp(b []byte, field protowire.Number, at time.Time) []byte {
	var stamp []byte
	stamp = appendVarint(stamp, timestampSeconds, uint64(at.Unix()))
	stamp = appendVarint(stamp, timestampNanos, uint64(at.Nanosecond()))
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, stamp)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}
