package consumer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections/access"
	"humanqa/projections/auditlog"
	"humanqa/projections/projects"
)

// An older version of the embedded node took events that no message can carry.
func TestAnEventThatCannotBeReadIsSetAsideWithItsStream(t *testing.T) {
	t.Parallel()
	consumers := []consumer.Consumer{access.Projector, projects.Projector, auditlog.Projector{}}
	w := setup(t, consumers...)
	own, others := domain.AccountStream("acc"), domain.AccountStream("other")
	for i, of := range []struct{ stream, eventType string }{{own, "account.key_issued"}, {"foreign-1", "tested"}} {
		w.Exec(`INSERT INTO eventlog.events VALUES ($1, 0, 0, gen_random_uuid(), true, $2, $3, '{}', convert_to(repeat('m', 17 << 20), 'UTF8'))`,
			i+1, of.stream, of.eventType)
	}
	log := logtest.Start(t, pgtest.DSN(t, w.DB))
	var written domain.AppendResult
	for _, to := range []struct {
		stream   string
		expected domain.ExpectedRevision
		event    domain.Event
	}{
		{others, domain.NoStream, &account.Created{Name: "forge"}},
		{others, 0, modeltest.Issued(1)},
		{own, 0, modeltest.Issued(2)},
		{"foreign-1", 0, modeltest.Issued(3)},
	} {
		var err error
		written, err = log.Append(w.Ctx(), to.stream, to.expected, []domain.NewEvent{
			{ID: uuid.New(), Event: to.event, Meta: domain.Metadata{CommandID: uuid.New(), Time: modeltest.Noon}},
		})
		must.NoError(t, err)
	}
	s := w.Service(log.Feed, consumers...)
	w.Run(s)
	must.NoError(t, s.WaitFor(w.Ctx(), written.Position))
	check := func() {
		t.Helper()
		if got := fmt.Sprint(w.keys("acc"), w.keys("other")); got != "[] [k1]" {
			t.Errorf("the keys are %s", got)
		}
		status := w.Status("access")
		if len(status.SetAside) != 1 || status.SetAside[0].Stream != own || status.SetAside[0].Category != generation.CategoryDecode ||
			!strings.Contains(status.SetAside[0].Detail, `{"$unreadable":{"bytes":17825794,`) || status.Problem() != "" || len(status.Notes()) != 1 {
			t.Errorf("got %+v", status)
		}
		w.Eventually("the audit has all events", func() bool { return w.Status("audit").Applied >= 6 })
		w.Sound(s, names(consumers)...)
	}
	check()
	must.NoError(t, s.RebuildAll(w.Ctx(), []string{"access", "audit"}, nil))
	check()
}
