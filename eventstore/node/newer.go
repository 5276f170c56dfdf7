package node

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields that the protocol got after the pinned client's stubs were generated.
// Without them in a CaughtUp, newer clients wait for ever. They are written as
// fields that the stubs don't know, which older clients pass over.
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

// resumePoint is the place to resume a subscription: behind a revision of a stream, or
// behind a position of $all. None is written while no event stands before the place.
type resumePoint struct {
	ofAll bool
	at    int64
}

func (p resumePoint) appendFields(b []byte) []byte {
	switch {
	case p.ofAll && p.at > 0:
		position := appendNumber(nil, positionCommit, p.at)
		b = appendBytes(b, caughtUpPosition, appendNumber(position, positionPrepare, p.at))
	case !p.ofAll && p.at >= 0:
		b = appendNumber(b, caughtUpRevision, p.at)
	}
	return b
}

func appendTimestamp(b []byte, field protowire.Number, at time.Time) []byte {
	stamp := appendNumber(nil, timestampSeconds, at.Unix())
	return appendBytes(b, field, appendNumber(stamp, timestampNanos, int64(at.Nanosecond())))
}
