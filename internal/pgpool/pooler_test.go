package pgpool_test

import (
	"errors"
	"testing"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/pooler"
)

func TestAPoolerInTransactionModeIsRecognised(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	for name, c := range map[string]struct {
		dsn  string
		want error
	}{
		"none":        {dsn, nil},
		"session":     {pooler.Start(t, dsn, pooler.Session), nil},
		"transaction": {pooler.Start(t, dsn, pooler.Transaction), pgpool.ErrNoSessions},
	} {
		if err := pgpool.CheckSessions(t.Context(), pgtest.NewDB(t, c.dsn)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
