package eventstore

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
)

// A log stamps each event that it takes with its own time. A copied event carries its
// original time at the end of its metadata. A reader through this package sees the
// original metadata and time, to the byte. So proofs of the event hold in both logs.
const (
	carriedTime = `"$created":`      // ticks of 100 ns since 1970
	carriedMeta = `{"$metadata":"`   // of metadata that are no JSON object, in base64
	carriedEnd  = `",` + carriedTime // behind them
	tick        = 100 * time.Nanosecond
)

// carrying gives the metadata under which an event is copied.
func carrying(meta []byte, created time.Time) []byte {
	at := strconv.FormatInt(created.UnixNano()/int64(tick), 10) + "}"
	body, ends := bytes.CutSuffix(meta, []byte("}"))
	if ends && len(body) > 0 && body[0] == '{' && !bytes.HasPrefix(body, []byte(carriedMeta)) {
		comma := ","
		if len(body) == 1 {
			comma = ""
		}
		if out := []byte(string(body) + comma + carriedTime + at); json.Valid(out) {
			return out
		}
	}
	return []byte(carriedMeta + base64.StdEncoding.EncodeToString(meta) + carriedEnd + at)
}

// uncarried is the inverse of carrying.
func uncarried(stored []byte) (meta []byte, created time.Time, copied bool) {
	body, ends := bytes.CutSuffix(stored, []byte("}"))
	at := bytes.LastIndex(body, []byte(carriedTime))
	if !ends || at < 1 {
		return nil, time.Time{}, false
	}
	ticks, err := strconv.ParseInt(string(body[at+len(carriedTime):]), 10, 64)
	if err != nil {
		return nil, time.Time{}, false
	}
	created = time.Unix(0, ticks*int64(tick)).UTC()
	switch body = body[:at]; {
	case bytes.HasPrefix(body, []byte(carriedMeta)) && bytes.HasSuffix(body, []byte(`",`)):
		encoded := body[len(carriedMeta) : len(body)-len(`",`)]
		if meta, err = base64.StdEncoding.DecodeString(string(encoded)); err != nil {
			return nil, time.Time{}, false
		}
		return meta, created, true
	case string(body) == "{":
		return []byte("{}"), created, true
	case body[len(body)-1] == ',':
		return append(bytes.Clone(body[:len(body)-1]), '}'), created, true
	}
	return nil, time.Time{}, false
}
