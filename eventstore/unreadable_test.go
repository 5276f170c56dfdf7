package eventstore

import (
	"errors"
	"fmt"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// setupUnreadable is a log with events that an older version of the node took and that no
// message can carry: one of a type that this binary knows, and one of another client's.
func setupUnreadable(t *testing.T) *Client {
	t.Helper()
	n := &testNode{t: t, dsn: pgtest.NewDSN(t), socket: newSocket(t)}
	db := pgtest.NewDB(t, n.dsn)
	for i, of := range []struct{ stream, eventType string }{{"job-known", (&job.ItemChecked{}).EventType()}, {"job-foreign", "tested"}} {
		_, err := db.ExecContext(t.Context(),
			`INSERT INTO eventlog.events VALUES ($1, 0, 0, gen_random_uuid(), true, $2, $3, '{}', convert_to(repeat('m', 17 << 20), 'UTF8'))`,
			i+1, of.stream, of.eventType)
		must.NoError(t, err)
	}
	n.start()
	t.Cleanup(n.stop)
	c := connect(t, n.socket, patientLimits)
	grow(t, c, "job-known", 1, 1)
	grow(t, c, "job-foreign", 1, 1)
	return c
}

func TestAReaderNamesAnEventThatCannotBeReadAndGoesOn(t *testing.T) {
	t.Parallel()
	c := setupUnreadable(t)
	var unreadable *DecodeError
	err := c.Load(t.Context(), "job-known", 0, func(domain.Recorded) error { return nil })
	if !errors.As(err, &unreadable) || unreadable.Stream != "job-known" || unreadable.Position.Commit != 1 {
		t.Errorf("got %v", err)
	}
	if got := load(t, c, "job-foreign"); len(got) != 2 || got[0].Event != nil || noteOf(got[1]) != "job-foreign@1" {
		t.Errorf("a type that nobody here knows: got %+v", got)
	}
	all := everything(t, c)
	if len(all) != 4 || all[0].Unreadable() == nil || all[1].Unreadable() == nil || all[2].Unreadable() != nil || all[3].Unreadable() != nil {
		t.Errorf("got %+v", all)
	}
}

func TestACopyHasAnUnreadableEventAsTheLogShowsIt(t *testing.T) {
	t.Parallel()
	from := setupUnreadable(t)
	_, to := setup(t)
	for range 2 { // the second run compares
		got, err := Copy(t.Context(), from, to, heard)
		must.NoError(t, err)
		all := everything(t, from)
		want := []string{
			fmt.Sprintf("%s (job.item_checked, revision 0 of job-known)", all[0].ID), fmt.Sprintf("%s (tested, revision 0 of job-foreign)", all[1].ID),
		}
		if got.Events != 4 || fmt.Sprint(got.Unreadable) != fmt.Sprint(want) {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
	wantSame(t, from, to)
}
