package wire

import (
	"bytes"
	"compress/gzip"
	"sync"
)

// A writer's tables take most of a megabyte, so they are used again.
var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Gzip compresses a content.
//
// An answer that holds a secret is not compressed. Its size would tell of the secret to
// an attacker who makes the reader's browser put guesses into the same answer (BREACH).
// Neither is a stream of events.
func Gzip(content []byte) []byte {
	var out bytes.Buffer
	w := gzips.Get().(*gzip.Writer)
	defer gzips.Put(w)
	w.Reset(&out)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
