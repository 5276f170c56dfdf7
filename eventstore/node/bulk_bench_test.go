package node_test

import (
	"fmt"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"google.golang.org/protobuf/types/known/emptypb"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

const perAppend = 500

// BenchmarkAppendOf500 measures appends of many events: over Append, where each
// event is a message, and over BatchAppend, where all are one. Beside them stands
// what Postgres takes for the same rows by COPY, without a node: into a table like
// the log's, into one with its primary key only, and into one without an index.
func BenchmarkAppendOf500(b *testing.B) {
	payload := []byte(fmt.Sprintf(`{"text":%q}`, make([]byte, 40)))
	b.Run("append", func(b *testing.B) {
		client := connect(b, socketConfig(onSocket(b).Addr()))
		events := make([]esdb.EventData, perAppend)
		measure(b, 1, func(_, i int) error {
			for j := range events {
				events[j] = event()
				events[j].Data = payload
			}
			_, err := client.AppendToStream(b.Context(), uniqueStream("job"), esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, events...)
			return err
		})
	})
	b.Run("batch", func(b *testing.B) {
		r := rawNode(b)
		call, err := r.BatchAppend(b.Context())
		must.NoError(b, err)
		messages := make([]*streams.BatchAppendReq_ProposedMessage, perAppend)
		measure(b, 1, func(_, i int) error {
			for j := range messages {
				messages[j] = &streams.BatchAppendReq_ProposedMessage{
					Id: &shared.UUID{Value: &shared.UUID_String_{String_: uuid.NewString()}}, Data: payload,
					Metadata: map[string]string{"type": "tested", "content-type": "application/json"},
				}
			}
			err := call.Send(&streams.BatchAppendReq{
				CorrelationId: messages[0].Id, ProposedMessages: messages, IsFinal: true,
				Options: &streams.BatchAppendReq_Options{
					StreamIdentifier:       stream(uniqueStream("job")),
					ExpectedStreamPosition: &streams.BatchAppendReq_Options_Any{Any: &emptypb.Empty{}},
				},
			})
			if err != nil {
				return err
			}
			resp, err := call.Recv()
			if err == nil && resp.GetSuccess() == nil {
				err = fmt.Errorf("got %v", resp)
			}
			return err
		})
	})
	benchmarkCopies(b, payload)
}

func benchmarkCopies(b *testing.B, payload []byte) {
	db := pgtest.New(b)
	for _, c := range []struct{ name, of string }{
		{"copy", "LIKE eventlog.events INCLUDING ALL"},
		{"copy-primary-key", "LIKE eventlog.events, PRIMARY KEY (position)"},
		{"copy-no-index", "LIKE eventlog.events"},
	} {
		b.Run(c.name, func(b *testing.B) {
			_, err := db.ExecContext(b.Context(), `DROP TABLE IF EXISTS copies; CREATE TABLE copies (`+c.of+`)`)
			must.NoError(b, err)
			measure(b, 1, func(_, i int) error {
				return pgpool.InTx(b.Context(), db, func(tx *sqlx.Tx) error {
					in, err := tx.PrepareContext(b.Context(), `COPY copies (position, revision, created, event_id, is_json, stream, type, data, metadata) FROM STDIN`)
					must.NoError(b, err)
					defer func() { _ = in.Close() }()
					name := uniqueStream("job")
					for j := range perAppend {
						_, err := in.ExecContext(b.Context(), i*perAppend+j, j, i, uuid.NewString(), true, name, "tested", payload, []byte("{}"))
						must.NoError(b, err)
					}
					_, err = in.ExecContext(b.Context()) // the end
					return err
				})
			})
		})
	}
}

// BenchmarkRead measures reads of a log of small events: a page of the whole log at
// a time, the log to its end, and a subscription up to the end, without and with
// a filter that lets all through.
func BenchmarkRead(b *testing.B) {
	const events = 50_000
	client := connect(b, socketConfig(onSocket(b).Addr()))
	payload := []byte(fmt.Sprintf(`{"text":%q}`, make([]byte, 40)))
	for range events / perAppend {
		batch := make([]esdb.EventData, perAppend)
		for j := range batch {
			batch[j] = event()
			batch[j].Data = payload
		}
		_, err := client.AppendToStream(b.Context(), uniqueStream("job"), esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, batch...)
		must.NoError(b, err)
	}
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			read, err := client.ReadAll(b.Context(), esdb.ReadAllOptions{}, events)
			must.NoError(b, err)
			for range events {
				_, err := read.Recv()
				must.NoError(b, err)
			}
			read.Close()
		}
		b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
	})
	for name, filter := range map[string]*esdb.SubscriptionFilter{
		"subscription": nil, "filtered": {Type: esdb.StreamFilterType, Prefixes: []string{"job"}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				sub, err := client.SubscribeToAll(b.Context(), esdb.SubscribeToAllOptions{From: esdb.Start{}, Filter: filter})
				must.NoError(b, err)
				for n := 0; n < events; {
					got := sub.Recv()
					if got.SubscriptionDropped != nil {
						b.Fatal(got.SubscriptionDropped.Error)
					}
					if got.EventAppeared != nil {
						n++
					}
				}
				must.NoError(b, sub.Close())
			}
			b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
