// Package conformance states the service's expectations of an event store, as tests
// through the official client. The embedded node must pass them, and so must the
// original: point HUMANQA_TEST_EVENTSTORE_URL at one.
//
// Versions of the original keep some rules differently. Such a test checks only the
// promise common to all of them, and says so. The service must not rely on more.
//
// The suite runs on a shared server. Every test writes under its own stream names, and
// filters its view of $all by them.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// patience bounds every test; a healthy server needs a fraction of it.
const patience = eventually.Patience

// Run tests the server that config describes. config is called for every
// client and returns a configuration of its own each time.
func Run(t *testing.T, config func() *esdb.Configuration) {
	s := &suite{config: config}
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"append", appendTests},
		{"repeat", repeatTests},
		{"read stream", readStreamTests},
		{"read all", readAllTests},
		{"subscribe to a stream", streamSubscriptionTests},
		{"subscribe to all", allSubscriptionTests},
		{"metadata", metadataTests},
		{"delete", deleteTests},
		{"links", linkTests},
		{"batch append", batchTests},
		{"protocol", protocolTests},
		{"server", serverTests},
		{"concurrency", concurrencyTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(s.newCase(t))
				})
			}
		})
	}
}

type test struct {
	name string
	run  func(c *scenario)
}

type suite struct {
	config func() *esdb.Configuration
}

// scenario holds the client and the context of one test, and its unique stream
// names.
type scenario struct {
	*testing.T
	suite  *suite
	ctx    context.Context
	client *esdb.Client
	id     string
}

func (s *suite) newCase(t *testing.T) *scenario {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	c := &scenario{T: t, suite: s, ctx: ctx, id: uuid.NewString()}
	c.client = c.connect()
	return c
}

func (c *scenario) connect() *esdb.Client {
	c.Helper()
	config := c.suite.config()
	config.DefaultDeadline = new(patience) // the library's own is 10 s, which a busy machine needs for one call
	client, err := esdb.NewClient(config)
	must.NoError(c, err)
	c.Cleanup(func() {
		if err := client.Close(); err != nil {
			c.Errorf("close the client: %v", err)
		}
	})
	return client
}

// stream is a stream name of this test alone; prefix groups several of them.
func (c *scenario) stream(name string) string { return c.prefix() + name }
func (c *scenario) prefix() string            { return "conf" + c.id + "-" }

func (c *scenario) refused(err error, code esdb.ErrorCode) {
	c.Helper()
	if got := codeOf(err); err == nil || got != code {
		c.Fatalf("got error %v (code %d), want code %d", err, got, code)
	}
}

func codeOf(err error) esdb.ErrorCode {
	var e *esdb.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// event is a new event; its number is in its data.
func event(n int) esdb.EventData {
	return esdb.EventData{
		EventID: uuid.New(), EventType: "tested", ContentType: esdb.ContentTypeJson,
		Data: fmt.Appendf(nil, `{"n":%d}`, n), Metadata: []byte(`{"m":true}`),
	}
}

func events(n int) []esdb.EventData {
	out := make([]esdb.EventData, n)
	for i := range out {
		out[i] = event(i)
	}
	return out
}

func expecting(r esdb.ExpectedRevision) esdb.AppendToStreamOptions {
	return esdb.AppendToStreamOptions{ExpectedRevision: r}
}

// written appends, and ends the test on an error.
func (c *scenario) written(stream string, expected esdb.ExpectedRevision, e ...esdb.EventData) *esdb.WriteResult {
	c.Helper()
	result, err := c.client.AppendToStream(c.ctx, stream, expecting(expected), e...)
	must.NoError(c, err)
	return result
}

func (c *scenario) conflicts(stream string, expected esdb.ExpectedRevision, e ...esdb.EventData) {
	c.Helper()
	_, err := c.client.AppendToStream(c.ctx, stream, expecting(expected), e...)
	c.refused(err, esdb.ErrorCodeWrongExpectedVersion)
}

// drain reads to the end of a read.
func drain(read *esdb.ReadStream, err error) ([]*esdb.ResolvedEvent, error) {
	if err != nil {
		return nil, err
	}
	defer read.Close()
	var out []*esdb.ResolvedEvent
	for {
		e, err := read.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
}

func (c *scenario) read(stream string, o esdb.ReadStreamOptions, count uint64) []*esdb.ResolvedEvent {
	c.Helper()
	out, err := drain(c.client.ReadStream(c.ctx, stream, o, count))
	must.NoError(c, err)
	return out
}

// revisionsOf reads a whole stream forward.
func (c *scenario) revisionsOf(stream string) []uint64 {
	c.Helper()
	return revisions(c.read(stream, esdb.ReadStreamOptions{}, 1_000_000))
}

func revisions(events []*esdb.ResolvedEvent) []uint64 {
	out := make([]uint64, len(events))
	for i, e := range events {
		out[i] = e.OriginalEvent().EventNumber
	}
	return out
}

func (c *scenario) equal(got, want []uint64) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Fatalf("got revisions %v, want %v", got, want)
	}
}

// sequence is from, from+1 … to, or downward.
func sequence(from, to int) []uint64 {
	var out []uint64
	step := 1
	if to < from {
		step = -1
	}
	for i := from; i != to+step; i += step {
		out = append(out, uint64(i))
	}
	return out
}

func position(e *esdb.ResolvedEvent) esdb.Position { return e.OriginalEvent().Position }
