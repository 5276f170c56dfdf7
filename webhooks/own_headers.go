package webhooks

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"humanqa/domain/project"
)

// SealedHeader is one of the client's own headers, with its value as its event holds it.
type SealedHeader struct {
	Name   string `json:"name"`
	Sealed string `json:"sealed"`
}

// SealedHeaders are a column of webhooks.endpoints.
type SealedHeaders []SealedHeader

// OwnHeaders are the own headers of an endpoint, and their origin.
type OwnHeaders struct {
	Headers       SealedHeaders `db:"headers"`
	HeadersOrigin string        `db:"headers_origin"`
}

// For gives the headers that a request to the URL carries: none to another origin.
func (h OwnHeaders) For(url string) SealedHeaders {
	if len(h.Headers) == 0 || h.HeadersOrigin != project.WebhookOrigin(url) {
		return nil
	}
	return h.Headers
}

func ownHeadersOf(e *project.WebhookHeadersSet) OwnHeaders {
	own := OwnHeaders{HeadersOrigin: e.Origin}
	for _, h := range e.Headers {
		own.Headers = append(own.Headers, SealedHeader{Name: h.Name, Sealed: h.Sealed})
	}
	return own
}

// Value implements driver.Valuer.
func (h SealedHeaders) Value() (driver.Value, error) {
	raw, err := json.Marshal(append(SealedHeaders{}, h...)) // never null
	return string(raw), err
}

// Scan implements sql.Scanner.
func (h *SealedHeaders) Scan(from any) error {
	raw, ok := from.([]byte)
	if !ok {
		return fmt.Errorf("own headers are %T, not JSON", from)
	}
	*h = nil
	return json.Unmarshal(raw, h)
}
