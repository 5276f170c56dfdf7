package domain

import (
	"bytes"
	"encoding/json"
)

// EncodeJSON is json.Marshal without the escapes for HTML. They make six bytes of each <, and
// URLs hard to read.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
