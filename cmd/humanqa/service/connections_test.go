package service

import (
	"strings"
	"testing"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestAProcessDividesItsConnections(t *testing.T) {
	t.Parallel()
	const own, log = "HUMANQA_DATABASE_URL=postgres://db/qa", "HUMANQA_EVENTSTORE_URL=esdb://log:2113"
	for _, c := range []struct {
		environ    string // besides own
		pool, node int
	}{
		{log + " HUMANQA_ROLES=api", 11, 0},
		{log + " HUMANQA_ROLES=projector,webhooks,policy", 9, 0},
		{log, 8, 0},
		{"HUMANQA_ROLES=api", 6, 5},
		{"", 4, 4},
		{"HUMANQA_DATABASE_CONNECTIONS=10", 3, 3},
		{"HUMANQA_DATABASE_CONNECTIONS=40", 22, 14},
		{log + " HUMANQA_ROLES=api HUMANQA_DATABASE_CONNECTIONS=4", 3, 0},
	} {
		cfg, err := ParseConfig(append(strings.Fields(c.environ), own))
		must.NoError(t, err)
		if d := cfg.divide(); d != (division{c.pool, c.node}) || d.pool+d.node+cfg.Roles.listeners() != cfg.DatabaseConnections {
			t.Errorf("%q: %+v", c.environ, d)
		}
	}
}

func TestProcessesThatMayTakeMoreConnectionsThanThereAreAreTold(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	db := pgtest.NewDB(t, dsn)
	var most int
	must.NoError(t, db.GetContext(t.Context(), &most, "SELECT current_setting('max_connections')::integer"))
	for pid := range 2 {
		cfg := Config{environment: environment{DatabaseConnections: most/2 + pid}}
		other, err := pgpool.Open(t.Context(), pgpool.Named(dsn, cfg.processName()))
		must.NoError(t, err)
		t.Cleanup(func() { must.NoError(t, other.Close()) })
	}
	err := CheckConnections(t.Context(), db)
	if err == nil || !strings.Contains(err.Error(), "processes may have ") {
		t.Errorf("for %d connections: %v", most, err)
	}
}
