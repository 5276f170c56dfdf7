package service

import (
	"testing"
	"time"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// A restore of yesterday's backup says nothing of a debit whose job was under way then: the
// deadline runs again when the service does.
func TestARestoreLetsNoDeadlinePass(t *testing.T) {
	t.Parallel()
	db := pgtest.NewDB(t, pgtest.NewDSN(t))
	core := &Core{DB: db, node: new(node.Node)}
	yesterday := time.Now().Add(-24 * time.Hour).Truncate(time.Millisecond).UTC()
	for n, e := range []struct {
		at   time.Time
		kind string
	}{{yesterday, "credits.debited"}, {time.Now(), "log.restored"}, {time.Now(), "log.restored"}} {
		_, err := db.Exec(`INSERT INTO eventlog.events (position, revision, created, event_id, is_json, stream, type, data, metadata)
			VALUES ($1, 0, $2, gen_random_uuid(), true, $3, $4, '{}', '{}')`, n+1, e.at.UnixMicro(), string(rune('a'+n)), e.kind)
		must.NoError(t, err)
	}
	at, err := core.auditedAt(t.Context())
	if err != nil || !at.Equal(yesterday) {
		t.Errorf("deadlines are judged by %s, %v; want %s", at, err, yesterday)
	}
	core.serves = true
	if at, err := core.auditedAt(t.Context()); err != nil || time.Since(at) > time.Hour {
		t.Errorf("while the service runs they are judged by %s, %v", at, err)
	}
}
