package eventstore

import (
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestALogWithoutRoomRefusesAtOnceAndTakesEventsAgainByItself(t *testing.T) {
	t.Parallel()
	n, c := setup(t)
	grow(t, c, "job-1", 0, 1)
	must.NoError(t, c.Writable(t.Context()))
	db := pgtest.NewDB(t, n.dsn)
	_, err := db.ExecContext(t.Context(), `
		CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON eventlog.events EXECUTE FUNCTION full_disk()`)
	must.NoError(t, err)

	e := note("job-1@1")
	for range 3 { // by the group that fails, and while the writer waits for room
		_, err := c.Append(t.Context(), "job-1", 0, []domain.NewEvent{e})
		var refusal *domain.Error
		if !errors.As(err, &refusal) || refusal.Kind != domain.KindUnavailable || errors.Is(err, domain.ErrUnknownOutcome) ||
			refusal.Message != "the event log takes no events: its disk is full" {
			t.Fatalf("an append without room: %v", err)
		}
	}
	if err := c.Writable(t.Context()); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("a log without room is writable: %v", err)
	}
	if got := load(t, c, "job-1"); len(got) != 1 {
		t.Errorf("%d events, want the first only", len(got))
	}

	_, err = db.ExecContext(t.Context(), `DROP FUNCTION full_disk CASCADE`)
	must.NoError(t, err)
	eventually.True(t, "room", func() bool { return c.Writable(t.Context()) == nil })
	written, err := c.Append(t.Context(), "job-1", 0, []domain.NewEvent{e})
	if want := (domain.Position{Commit: 2, Prepare: 2}); err != nil || written.Revision != 1 || written.Position != want {
		t.Errorf("written %+v, %v", written, err)
	}
}
