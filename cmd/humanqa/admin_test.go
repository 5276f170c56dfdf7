package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi"
	"humanqa/internal/eventually"
	"humanqa/internal/must"
	"humanqa/internal/pgclock"
	"humanqa/internal/pgtest"
)

// Anybody may read why the service is not ready: the errors, which name
// addresses, are for the log.
func TestWhatIsNotReadyIsSaidWithoutTheErrors(t *testing.T) {
	t.Parallel()
	_, quiet := serveConfig(t)
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	log, err := eventstore.OpenSocket(nowhere, quiet)
	must.NoError(t, err)
	db, err := sqlx.Open("postgres", "sslmode=disable user=nobody host="+nowhere)
	must.NoError(t, err)
	t.Cleanup(func() { _, _ = db.Close(), log.Close() })
	var clock *pgclock.Clock // ten seconds apart from Postgres'
	postgres := pgtest.NewEmpty(t)
	eventually.True(t, "Postgres says soon enough what time it is", func() bool {
		clock, err = pgclock.Open(t.Context(), postgres, quiet, func() time.Time { return time.Now().Add(-10 * time.Second) })
		return err == nil && strings.HasSuffix(clock.Problem(), "s ahead of this machine's")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s := &service{core: &core{db: db, log: log, clock: clock, binding: consumer.NewBinding(db, log, time.Now)}}
	var told []httpapi.Problem
	for _, p := range s.problems(ctx) {
		if (p.Part == "postgres" || p.Part == "log") && p.Cause == nil {
			t.Errorf("%s: nothing for the log", p.Part)
		}
		told = append(told, httpapi.Problem{Part: p.Part, Reason: p.Reason})
	}
	want := []httpapi.Problem{{Part: "service", Reason: "it is starting"}, {Part: "postgres", Reason: "it does not answer"},
		{Part: "clock", Reason: clock.Problem()}, {Part: "log", Reason: "it does not answer"}}
	if !slices.Equal(told, want) {
		t.Errorf("got %v, want %v", told, want)
	}
}
