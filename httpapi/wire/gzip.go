package wire

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"humanqa/domain"
)

// A writer's tables take most of a megabyte, so they are used again.
var gzips = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Inflate undoes the encoding of a request's body, which may be gzip (decisions, "Content
// encodings").
func Inflate(r *http.Request) error {
	encodings := slices.DeleteFunc(Listed(r.Header.Values("Content-Encoding")), func(one string) bool {
		return strings.EqualFold(one, "identity")
	})
	if len(encodings) == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	if _, known := Among([]string{"gzip", "x-gzip"}, encodings[0]); !known || len(encodings) > 1 {
		return WithHeader(&domain.Error{
			Kind: domain.KindEncoding, Code: domain.CodeInvalidRequest,
			Message: "the body's Content-Encoding is not read: " + Clip(strings.Join(encodings, ", "), MaxSlip),
			Hint:    "send the body as it is, or as gzip",
		}, "Accept-Encoding", "gzip")
	}
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return domain.Invalid(domain.Detail{Path: BodyPath, Message: "is not gzip as its Content-Encoding says"})
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{plain, r.Body}
	return nil
}

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
