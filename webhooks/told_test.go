package webhooks_test

import (
	"context"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/consumer"
	"humanqa/internal/mail"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
	"humanqa/webhooks"
	"humanqa/webhooks/notices"
)

// teller is a consumer whose rows tell clients of events.
type teller interface {
	consumer.Consumer
	consumer.Lazy
}

// twin reads what another consumer reads, and as often. It waits for no read model, and
// writes nothing.
type twin struct{ teller }

func (twin) Name() string                { return "twin" }
func (twin) Begin(context.Context) error { return nil }

func (twin) Prepare(_ context.Context, batch []domain.Recorded) (consumer.Write, int, error) {
	return func(context.Context, *sqlx.Tx) error { return nil }, len(batch), nil
}

// The rows are what webhooks (and so hqa listen), letters, and streams of events (and so
// hqa wait) are sent from.
func TestNothingIsToldWhileTheReadModelOfTestsIsHeldUp(t *testing.T) {
	t.Parallel()
	for table, tellerOn := range map[string]func(*hooktest.Bundle) teller{
		"webhooks.deliveries": func(b *hooktest.Bundle) teller {
			return webhooks.NewSubscriber(b.DB, b.Events, "https://qa.example")
		},
		"mail.notices":             func(b *hooktest.Bundle) teller { return notices.New(b.DB, b.Events, true) },
		"readmodel.account_events": func(*hooktest.Bundle) teller { return events.Projector{} },
	} {
		t.Run(table, func(t *testing.T) {
			b := hooktest.Setup(t)
			hears(b, "ann", "acc", mail.Choices{Reports: mail.AllReports})
			tells := tellerOn(b)
			w := &modeltest.World{T: t, DB: b.DB, Log: b.Events.Memory}
			w.Sup = w.Service(b.Events, jobs.Projector, tells, twin{tells})
			w.Run(w.Sup)
			told := func() int { return w.Count("SELECT count(*) FROM " + table) }
			passes := func(name string) {
				t.Helper()
				w.Eventually(name+" passes the log's end", func() bool { return w.Status(name).Position == w.Log.Head() })
			}
			b.Project("p", "https://hooks.example", nil)
			tests := []string{"j1", "j2", "j3"}
			for _, id := range tests {
				b.Submit("p", id)
			}
			passes(tells.Name())
			before := told()
			release := pgtest.HoldUp(t, b.DB, "readmodel.jobs")
			for _, id := range tests { // by the last one, the first would be told
				b.Events.Add(domain.JobStream(id), &job.Failed{Reason: "sla", Refund: 5, At: hooktest.At})
				passes("twin")
			}
			if n := told() - before; n != 0 {
				t.Errorf("%d rows tell of what cannot be read", n)
			}
			release()
			passes(tells.Name())
			if n := told() - before; n != len(tests) {
				t.Errorf("%d rows tell of %d events", n, len(tests))
			}
		})
	}
}
