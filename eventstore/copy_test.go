package eventstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

func heard(int64) {}

func everything(t *testing.T, c *Client) []RawEvent {
	t.Helper()
	var all []RawEvent
	must.NoError(t, c.Walk(t.Context(), func(e RawEvent) error { all = append(all, e); return nil }))
	return all
}

// wantSame compares all that one log holds with what another does.
func wantSame(t *testing.T, from, to *Client) {
	t.Helper()
	is, was := everything(t, to), everything(t, from)
	if len(is) != len(was) {
		t.Fatalf("%d events, want %d", len(is), len(was))
	}
	for i, e := range was {
		got := is[i]
		if got.Stream != e.Stream || got.Revision != e.Revision || got.Type != e.Type || got.ID != e.ID || !got.Created.Equal(e.Created) ||
			!bytes.Equal(got.Data, e.Data) || !bytes.Equal(got.Meta, e.Meta) || got.Recorded().Stored.Meta != e.Recorded().Stored.Meta {
			t.Fatalf("event %d is %+v, want %+v", i, got, e)
		}
		if got.Copied.IsZero() || !e.Copied.IsZero() {
			t.Fatalf("event %d says it was copied at %v, and the first one at %v", i, got.Copied, e.Copied)
		}
	}
}

// A source that is written to, and copies that end at any moment.
func TestACopyUnderLoadThatIsKilledTwiceIsTheSame(t *testing.T) {
	t.Parallel()
	_, from := setup(t)
	_, to := setup(t)
	grow(t, from, "job-early", 0, 200)
	var stop atomic.Bool
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := 0; !stop.Load() && i < 400; i++ {
				stream := fmt.Sprintf("job-%d-%d", w, i/40)
				events := []domain.NewEvent{note("a"), note("b")}
				if _, err := from.Append(t.Context(), stream, domain.ExpectedRevision(i%40*2-1), events); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for killed := range int64(2) {
		limit := killed*400 + 50 + rand.Int64N(300)
		eventually.True(t, "the source grows", func() bool {
			at, err := from.Head(t.Context())
			return err == nil && int64(at.Commit) > limit+copyAppend // an embedded node counts events
		})
		ctx, kill := context.WithCancel(t.Context())
		got, err := Copy(ctx, from, to, func(events int64) {
			if events >= limit {
				kill()
			}
		})
		kill()
		if err == nil || got.Added == 0 {
			t.Errorf("the copy added %d events and was through before it was killed: %v", got.Added, err)
		}
	}
	if _, err := Copy(t.Context(), from, to, heard); err != nil { // to an end that has moved on since
		t.Fatal(err)
	}
	stop.Store(true)
	writers.Wait()
	head, err := from.Head(t.Context())
	must.NoError(t, err)
	last, err := Copy(t.Context(), from, to, heard)
	if err != nil || last.Events != int64(head.Commit) || !last.SamePlaces {
		t.Fatalf("got %+v, %v of a log that ends at %s", last, err, head)
	}
	wantSame(t, from, to)
	again, err := Copy(t.Context(), from, to, heard)
	if err != nil || again.Added != 0 || again.Hash != last.Hash || again.Events != last.Events || !again.SamePlaces {
		t.Errorf("again: got %+v, %v, want nothing added to %+v", again, err, last)
	}
	if after, err := from.Head(t.Context()); err != nil || after != head {
		t.Errorf("the log that was copied ends at %s, %v, and did at %s", after, err, head)
	}
	// What was copied goes on as the first would have.
	stream := everything(t, from)[0].Stream
	if _, err := to.Append(t.Context(), stream, 199, []domain.NewEvent{note("next")}); err != nil {
		t.Error(err)
	}
}

// Other clients of a log write what the service does not.
func TestACopyKeepsWhatOtherClientsWrite(t *testing.T) {
	t.Parallel()
	_, from := setup(t)
	_, to := setup(t)
	client := library(t, from)
	write := func(stream string, events ...esdb.EventData) {
		t.Helper()
		_, err := client.AppendToStream(t.Context(), stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, events...)
		must.NoError(t, err)
	}
	event := func(kind string, content esdb.ContentType, data, meta string) esdb.EventData {
		return esdb.EventData{EventID: uuid.New(), EventType: kind, ContentType: content, Data: []byte(data), Metadata: []byte(meta)}
	}
	write("binary", event("blob", esdb.ContentTypeBinary, "\x00\xff", "\x00}"), event("blob", esdb.ContentTypeBinary, "", ""))
	write("text", event("text", esdb.ContentTypeJson, `{"a":1}`, `{}`), event("text", esdb.ContentTypeJson, `[]`, `{ }`))
	write("links", event("$>", esdb.ContentTypeBinary, "0@text", ""))
	write("gone", event("text", esdb.ContentTypeJson, `{}`, ``))
	_, err := client.SetStreamMetadata(t.Context(), "text", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, esdb.StreamMetadata{})
	must.NoError(t, err)
	_, err = client.TombstoneStream(t.Context(), "gone", esdb.TombstoneStreamOptions{ExpectedRevision: esdb.Any{}})
	must.NoError(t, err)
	// A log's places are its own where its server writes something, too.
	grow(t, to, "$servers-own", 0, 3)
	got, err := Copy(t.Context(), from, to, heard)
	if err != nil || got.Events != 8 || got.Added != 8 || got.SamePlaces {
		t.Fatalf("got %+v, %v", got, err)
	}
	is, was := everything(t, to), everything(t, from)
	for i, e := range was[:7] {
		if is[i].ID != e.ID || !bytes.Equal(is[i].Data, e.Data) || !bytes.Equal(is[i].Meta, e.Meta) || !is[i].Created.Equal(e.Created) {
			t.Errorf("event %d is %+v, want %+v", i, is[i], e)
		}
	}
	if again, err := Copy(t.Context(), from, to, heard); err != nil || again.Added != 0 || again.Hash != got.Hash {
		t.Errorf("again: got %+v, %v", again, err)
	}
	// A stream that was deleted and begun anew would be given an event of the
	// target's own.
	write("soft", event("text", esdb.ContentTypeJson, `{}`, ``))
	_, err = client.DeleteStream(t.Context(), "soft", esdb.DeleteStreamOptions{ExpectedRevision: esdb.Any{}})
	must.NoError(t, err)
	if got, err := Copy(t.Context(), from, to, heard); err != nil || got.Added != 2 {
		t.Fatalf("a deleted stream: got %+v, %v", got, err)
	}
	write("soft", event("text", esdb.ContentTypeJson, `{}`, ``))
	if _, err := Copy(t.Context(), from, to, heard); !errors.Is(err, ErrCannotCopy) || !strings.Contains(err.Error(), "of soft") {
		t.Errorf("a revived stream: got %v", err)
	}
}

// library is the client's own client, for what the service never does.
func library(t *testing.T, c *Client) *esdb.Client {
	t.Helper()
	config := c.pool[0].config
	config.Logger, config.DefaultDeadline = nil, new(eventually.Patience)
	client, err := esdb.NewClient(&config)
	must.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestACopyRefusesATargetThatHoldsSomethingElse(t *testing.T) {
	t.Parallel()
	_, from := setup(t)
	_, to := setup(t)
	grow(t, from, "job-a", 0, 3)
	_, err := Copy(t.Context(), from, to, heard)
	must.NoError(t, err)
	grow(t, to, "job-b", 0, 1)
	before, err := to.Head(t.Context())
	must.NoError(t, err)
	for _, said := range []string{"its event 4 is", "and nothing in the log to copy from"} {
		if _, err := Copy(t.Context(), from, to, heard); !errors.Is(err, ErrCannotCopy) || !strings.Contains(err.Error(), said) {
			t.Errorf("got %v, want %q", err, said)
		}
	}
	grow(t, from, "job-a", 3, 1)
	if _, err := Copy(t.Context(), from, to, heard); !errors.Is(err, ErrCannotCopy) || !strings.Contains(err.Error(), "of job-b") {
		t.Errorf("got %v", err)
	}
	if after, err := to.Head(t.Context()); err != nil || after != before {
		t.Errorf("%s was written to a log that was refused, %v", after, err)
	}
	// Neither half of a log can be the copy of the other.
	if _, err := Copy(t.Context(), to, from, heard); !errors.Is(err, ErrCannotCopy) {
		t.Errorf("the other way: got %v", err)
	}
}

func TestMetadataAndTimeComeBackToTheByte(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 678_901_200, time.UTC)
	for _, meta := range []string{
		``, `{}`, `{ }`, `{"a":1}`, `{"a":{"$created":5}}`, `{"a":"\"$created\":5}"} `, `[]`, `null`, `7`, "\x00\xff", `{`, `}`, `{"$metadata":"eA=="}`,
		`{"a":1,}`, "{\n}", `{"$metadata":"eA==","b":1}`,
	} {
		stored := carrying([]byte(meta), created)
		got, at, copied := uncarried(stored)
		if !copied || string(got) != meta || !at.Equal(created) {
			t.Errorf("%q comes back as %q at %v, %v", meta, got, at, copied)
		}
		if _, _, copied := uncarried([]byte(meta)); copied {
			t.Errorf("%q is taken for a copy's", meta)
		}
	}
	_, meta, err := Encode(newEvent(&job.ItemChecked{}))
	must.NoError(t, err)
	var read domain.Metadata
	if _, read, err = Decode("job.item_checked", []byte(`{}`), carrying(meta, created)); err != nil || read.Actor != "operator" {
		t.Errorf("other readers see %+v, %v", read, err)
	}
}
