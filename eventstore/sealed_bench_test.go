package eventstore

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
)

// life is a test with a checklist of five items, as the log has it.
func life(id int) (stream string, events []domain.NewEvent) {
	items, report := []job.Item{}, []job.ReportItem{}
	for i := range 5 {
		item := job.Item{
			ID: fmt.Sprint("item-", i), Key: fmt.Sprint("key-", i), Severity: job.Major,
			Description: strings.Repeat("Put a book into the cart. ", 3), ExpectedOutcome: "The cart shows the book.",
		}
		items = append(items, item)
		report = append(report, job.ReportItem{Item: item, Status: job.ItemPass, Note: "The cart shows it."})
	}
	at := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	all := []domain.Event{
		&job.Created{Submission: job.Submission{
			AccountID: "acc", ProjectID: "project", URL: "https://shop.example.com/checkout", Title: "Checkout", Description: "Buy one thing.",
			Type: job.PaymentFlow, TypeEcho: "Payment Flow", SLAMinutes: 60, Price: 5, Source: "api",
		}, Items: items, CreatedAt: at},
		&job.Claimed{CheckerID: "ann", Token: 1, DueAt: at, At: at},
	}
	for _, item := range items {
		all = append(all, &job.ItemChecked{ItemID: item.ID, Status: job.ItemPass, Note: "The cart shows it.", At: at})
	}
	all = append(all,
		&job.Completed{ReportID: "report", OverallStatus: "pass", PassCount: 5, Summary: "It works.", Items: report, At: at},
		&job.Rated{Rating: 5, Note: "Thank you.", At: at})
	for _, e := range all {
		events = append(events, domain.NewEvent{ID: uuid.New(), Event: e, Meta: domain.Metadata{AccountID: "acc", Actor: "key:1", Time: at}})
	}
	return domain.JobStream(fmt.Sprint(id)), events
}

// BenchmarkTexts writes and reads tests with texts in the clear and sealed under a key each:
// ns/op is one event of them without the log. The keys are in memory.
func BenchmarkTexts(b *testing.B) {
	db := pgtest.New(b)
	v, err := vault.Open(b.Context(), vault.Config{KeyFile: filepath.Join(b.TempDir(), "master.json"), DB: db})
	must.NoError(b, err)
	for _, c := range []struct {
		name   string
		client *Client
	}{{"clear", &Client{}}, {"sealed", &Client{sealer: v}}} {
		b.Run("write/"+c.name, func(b *testing.B) {
			for n := 0; n < b.N; {
				stream, events := life(n % 500) // keys are there after the first of each
				_, err := c.client.proposals(b.Context(), stream, events)
				must.NoError(b, err)
				n += len(events)
			}
		})
		b.Run("read/"+c.name, func(b *testing.B) {
			var stored []RawEvent
			for id := range 200 {
				stream, events := life(id)
				proposed, err := c.client.proposals(b.Context(), stream, events)
				must.NoError(b, err)
				for i, p := range proposed {
					stored = append(stored, RawEvent{Stream: stream, Revision: uint64(i), Type: p.EventType, Data: p.Data, Meta: p.Metadata})
				}
			}
			b.ResetTimer()
			for n := 0; n < b.N; {
				page := stored[n%(len(stored)-readBlock):][:readBlock]
				decodePage(b.Context(), b, c.client, page)
				n += len(page)
			}
		})
	}
}

func decodePage(ctx context.Context, b *testing.B, c *Client, page []RawEvent) {
	b.Helper()
	for _, r := range page {
		var err error
		if r.data, r.texts, err = c.openTexts(ctx, r.Stream, r.Type, r.Data); err != nil {
			b.Fatal(err)
		}
		if _, err := r.decode(false); err != nil {
			b.Fatal(err)
		}
	}
}
