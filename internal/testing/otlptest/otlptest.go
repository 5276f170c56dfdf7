// Package otlptest is a collector of traces for tests: OTLP over HTTP, on loopback.
package otlptest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as it was received. Ids are lower-case hex; Parent is empty for a root.
type Span struct {
	Name, Trace, ID, Parent string
	Links                   []string // the traces that it names besides
	Values                  map[string]string
	Service                 string
	Failed                  bool
}

// Collector keeps every span that it receives.
type Collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []Span
}

// New starts a collector, which ends with the test.
func New(t testing.TB) *Collector {
	t.Helper()
	c := &Collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := c.take(r); err != nil {
			t.Errorf("the collector cannot read what came: %v", err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *Collector) take(r *http.Request) (err error) {
	body := r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(r.Body); err != nil {
			return err
		}
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var sent collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &sent); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		service := values(resource.Resource.GetAttributes())["service.name"]
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span := Span{
					Name: s.Name, Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId),
					Parent: hex.EncodeToString(s.ParentSpanId), Values: values(s.Attributes), Service: service,
					Failed: s.Status.GetCode() == 2,
				}
				for _, l := range s.Links {
					span.Links = append(span.Links, hex.EncodeToString(l.TraceId))
				}
				c.spans = append(c.spans, span)
			}
		}
	}
	return nil
}

func values(list []*common.KeyValue) map[string]string {
	of := map[string]string{}
	for _, kv := range list {
		switch v := kv.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			of[kv.Key] = v.StringValue
		default:
			of[kv.Key] = kv.Value.String()
		}
	}
	return of
}

// Spans gives the spans of a trace; of all traces for an empty id.
func (c *Collector) Spans(trace string) (list []Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if trace == "" || s.Trace == trace {
			list = append(list, s)
		}
	}
	return list
}
