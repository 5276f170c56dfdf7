package store

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// softDeleted as $tb means the stream was deleted: it reads as absent until
// the next write, which continues its revisions.
const softDeleted = tombstoned

// metadata holds the limits on reading a stream, from its metadata stream. Zero
// values mean no limit.
type metadata struct {
	maxCount       int64
	maxAge         time.Duration
	truncateBefore int64
	// raw is kept only while the stream is soft deleted: undeleting rewrites it.
	raw []byte
}

// metaStreamMetadata is the original's rule for every "$$" stream: only the
// latest metadata counts.
var metaStreamMetadata = metadata{maxCount: 1}

// parseMetadata reads the last event of a metadata stream as the original does (decisions,
// "A stream's metadata").
func parseMetadata(isJSON bool, data []byte) metadata {
	var fields map[string]json.RawMessage
	if !isJSON || json.NewDecoder(bytes.NewReader(data)).Decode(&fields) != nil {
		return metadata{}
	}
	var m metadata
	var maxAge, cacheControl int64
	for _, field := range []struct {
		name  string
		least int64
		into  *int64
	}{
		{"$maxCount", 1, &m.maxCount},
		{"$maxAge", 1, &maxAge},
		{"$tb", 0, &m.truncateBefore},
		{"$cacheControl", 1, &cacheControl}, // limits nothing itself
	} {
		text, set := fields[field.name]
		if !set {
			continue
		}
		v, err := strconv.ParseInt(string(text), 10, 64)
		switch {
		case err != nil:
			return metadata{}
		case v >= field.least:
			*field.into = v
		}
	}
	if acl, set := fields["$acl"]; set && acl[0] != '{' {
		return metadata{}
	}
	if temporary, set := fields["$tempStream"]; set && temporary[0] != 't' && temporary[0] != 'f' {
		return metadata{}
	}
	m.maxAge = time.Duration(min(maxAge, maxAgeSeconds)) * time.Second
	if m.truncateBefore == softDeleted {
		m.raw = data
	}
	return m
}

// maxAgeSeconds keeps $maxAge inside time.Duration (292 years).
const maxAgeSeconds = 9_000_000_000

func (m metadata) deleted() bool { return m.truncateBefore == softDeleted }

// undeleted rewrites the metadata of a soft deleted stream so that it begins
// at revision from; everything else in it stays. It fails if they would grow beyond a
// reader's message, such as by names that are not UTF-8.
func undeleted(raw []byte, from int64) ([]byte, bool) {
	var fields map[string]json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&fields); err != nil || fields == nil { // null is no object
		return nil, false
	}
	fields["$tb"] = json.RawMessage(strconv.FormatInt(from, 10))
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // six bytes for each <
	err := encoder.Encode(fields)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err == nil && out.Len() <= len(raw)+64 // the number of $tb
}

// deletedMetadata is the body that soft deletes a stream.
var deletedMetadata = []byte(`{"$tb":` + strconv.FormatInt(softDeleted, 10) + `}`)
