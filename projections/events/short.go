package events

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// A row's JSON is stored short: JSON holds no control characters, so each of them can
// stand for something that is often there. What comes of it depends on nothing but the
// JSON, so rows can be compared.
const (
	shortID   = 0x01 // 16 bytes follow: a UUID as a JSON string
	shortTime = 0x02 // 8 bytes follow: nanoseconds since 1970, a time in UTC as a JSON string
	shortText = 0x03 // this and those behind it: fragments
)

// fragments begin with a quote each, the longer before what it begins with. Another list
// is another layout.
var fragments = [...]string{
	`"id":`, `"executiveSummary":"`, `"healthScore":`, `"bugs":[{"`, `"passCount":`, `"failCount":`, `"skipCount":`,
	`"strengths":["`, `"recommendations":["`, `"generatedBy":"rules"`, `"at":`, `"reportId":`, `"overallStatus":"`,
	`"summary":"`, `"items":[{`, `"description":"`, `"severity":"`, `"status":"pass"`, `"status":"`, `"note":"`,
	`"slaMinutes":`, `"price":`, `"source":"`, `"createdAt":`, `"title":"`, `"url":"https://`, `"typeEcho":"`, `"type":"`,
	`"projectId":`,
}

const (
	quotedID  = 38
	quotedMin = len(`"2006-01-02T15:04:05Z"`)
)

// shorten is undone by lengthen.
func shorten(text []byte) []byte {
	out := make([]byte, 0, len(text)/2)
	for len(text) > 0 {
		i := bytes.IndexByte(text, '"')
		if i < 0 {
			return append(out, text...)
		}
		out, text = append(out, text[:i]...), text[i:]
		var took int
		if out, took = shortAt(out, text); took == 0 {
			out, took = append(out, '"'), 1
		}
		text = text[took:]
	}
	return out
}

// shortAt replaces what the text begins with, and says how much that was.
func shortAt(out, text []byte) (_ []byte, took int) {
	if len(text) >= quotedMin && text[1] >= '0' && text[1] <= 'f' {
		if len(text) >= quotedID && text[quotedID-1] == '"' {
			inner := string(text[1 : quotedID-1])
			if id, err := uuid.Parse(inner); err == nil && id.String() == inner {
				return append(append(out, shortID), id[:]...), quotedID
			}
		}
		if end := 1 + bytes.IndexByte(text[1:], '"'); text[5] == '-' && end >= quotedMin-1 {
			inner := string(text[1:end])
			at, err := time.Parse(time.RFC3339Nano, inner)
			if nanos := at.UnixNano(); err == nil && time.Unix(0, nanos).UTC().Format(time.RFC3339Nano) == inner {
				return binary.BigEndian.AppendUint64(append(out, shortTime), uint64(nanos)), end + 1 //nolint:gosec // bits
			}
		}
	}
	for i, f := range fragments {
		if len(text) >= len(f) && text[1] == f[1] && string(text[:len(f)]) == f {
			return append(out, byte(shortText+i)), len(f) //nolint:gosec // fewer than 32
		}
	}
	return out, 0
}

var errShort = errors.New("a row of the feed is cut off")

// lengthen is the JSON that was shortened.
func lengthen(short []byte) ([]byte, error) {
	out := make([]byte, 0, 3*len(short))
	for i := 0; i < len(short); i++ {
		switch c := short[i]; {
		case c >= ' ':
			out = append(out, c)
		case c == shortID:
			if len(short) < i+17 {
				return nil, errShort
			}
			out = append(append(append(out, '"'), uuid.UUID(short[i+1:i+17]).String()...), '"')
			i += 16
		case c == shortTime:
			if len(short) < i+9 {
				return nil, errShort
			}
			at := time.Unix(0, int64(binary.BigEndian.Uint64(short[i+1:]))).UTC() //nolint:gosec // bits
			out = append(at.AppendFormat(append(out, '"'), time.RFC3339Nano), '"')
			i += 8
		case c >= shortText && int(c-shortText) < len(fragments):
			out = append(out, fragments[c-shortText]...)
		default:
			return nil, fmt.Errorf("a row of the feed has %#x at %d", c, i)
		}
	}
	return out, nil
}
