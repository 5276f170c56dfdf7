package eventstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/origin"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// setupSmall is a log that takes no more than an original does unless it is set.
func setupSmall(t *testing.T) *Client {
	t.Helper()
	_, c := setupSmallNode(t)
	return c
}

func setupSmallNode(t *testing.T) (*testNode, *Client) {
	t.Helper()
	n := &testNode{t: t, dsn: pgtest.NewDSN(t), socket: newSocket(t), limit: node.MinAppendSize}
	n.start()
	t.Cleanup(n.stop)
	return n, connect(t, n.socket, patientLimits)
}

// longReport is the longest a checker can write: every text of a hundred items at
// its limit, in characters of four bytes.
func longReport() *job.Completed {
	text := func(n int) string { return strings.Repeat("😀", n) }
	e := &job.Completed{ReportID: "rep", OverallStatus: "fail", Summary: text(5000)}
	for i := range 100 {
		e.Items = append(e.Items, job.ReportItem{
			Item: job.Item{
				ID: fmt.Sprint("item-", i), Key: fmt.Sprint("key-", i), Severity: job.Major,
				Description: text(1000), ExpectedOutcome: text(1000),
			},
			Status: job.ItemFail, Note: text(2000),
		})
	}
	return e
}

func appendReport(ctx context.Context, c *Client, e domain.NewEvent) error {
	_, err := c.Append(ctx, "job-long", domain.NoStream, []domain.NewEvent{newEvent(&job.Released{Token: 1}), e})
	return err
}

func TestTheLongestReportFitsALogThatTakesAMebibyteAnAppend(t *testing.T) {
	t.Parallel()
	c := setupSmall(t)
	want := longReport()
	e := newEvent(want)
	feed := NewFeed(c, quietLog())
	ctx, cancel := context.WithCancel(context.Background())
	fed := make(chan error, 1)
	go func() { fed <- feed.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-fed; err != nil {
			t.Error(err)
		}
	})
	must.NoError(t, appendReport(t.Context(), c, e))

	check := func(how string, r domain.Recorded) {
		t.Helper()
		if !reflect.DeepEqual(r.Event, want) || r.ID != e.ID || r.Meta.CommandID != e.Meta.CommandID {
			t.Errorf("%s gives another event", how)
		}
	}
	found := map[string]int{}
	see := func(how string, r domain.Recorded) {
		if r.Stream == "job-long" && r.Revision == 1 {
			check(how, r)
			found[how]++
		}
	}
	must.NoError(t, c.Load(t.Context(), "job-long", 0, func(r domain.Recorded) error { see("Load", r); return nil }))
	page, _, _, err := c.ReadAll(t.Context(), domain.Position{}, true, 100, nil)
	must.NoError(t, err)
	for _, r := range page {
		see("ReadAll", r)
	}
	rawPage, _, _, err := c.ReadAllRaw(t.Context(), domain.Position{}, true, 100)
	must.NoError(t, err)
	for _, raw := range rawPage {
		r, err := raw.Decode()
		must.NoError(t, err)
		see("ReadAllRaw", r)
		if raw.Type == "job.completed" && (string(raw.Data) != "{}" || len(raw.Whole()) < 1<<20) {
			t.Errorf("stored are %d bytes of %d", len(raw.Data), len(raw.Whole()))
		}
		if shown := Redact(raw.Type, raw.Data); raw.Type == "log.part" && !bytes.Contains(shown, []byte(domain.HiddenText)) {
			t.Errorf("a part shows %.80s", shown)
		}
	}
	for at := (Checkpoint{Start: true}); found["feed"] == 0; {
		page, err := feed.Next(t.Context(), at, 100, nil)
		must.NoError(t, err)
		for _, r := range page.Events {
			see("feed", r)
		}
		at = At(page.Next)
	}
	for _, how := range []string{"Load", "ReadAll", "ReadAllRaw", "feed"} {
		if found[how] != 1 {
			t.Errorf("%s gives the event %d times", how, found[how])
		}
	}
}

// A crash behind the parts leaves them alone; the command comes again with the
// same id.
func TestPartsWithoutTheirEventAreFoundByARepeat(t *testing.T) {
	t.Parallel()
	c := setupSmall(t)
	e := newEvent(longReport())
	proposed, err := new(Client).proposals(t.Context(), "job-1", []domain.NewEvent{e})
	must.NoError(t, err)
	must.NoError(t, c.split(t.Context(), proposed))
	must.NoError(t, appendReport(t.Context(), c, e))
	parts := 0
	if err := c.Load(t.Context(), origin.PartStream(e.ID), 0, func(domain.Recorded) error { parts++; return nil }); err != nil || parts != 4 {
		t.Errorf("%d parts, %v, want those of one event", parts, err)
	}
}

func TestAnEventWithoutItsPartsDoesNotDecode(t *testing.T) {
	t.Parallel()
	c := setupSmall(t)
	proposed, err := new(Client).proposals(t.Context(), "job-1", []domain.NewEvent{newEvent(longReport())})
	must.NoError(t, err)
	must.NoError(t, c.split(t.Context(), proposed))
	lost := proposed[0]
	lost.EventID = uuid.New() // which has none
	_, _, err = call(t.Context(), c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, "job-lost", esdb.AppendToStreamOptions{ExpectedRevision: esdb.NoStream{}}, lost)
	})
	must.NoError(t, err)
	var undecodable *DecodeError
	err = c.Load(t.Context(), "job-lost", 0, func(domain.Recorded) error { return nil })
	if !errors.As(err, &undecodable) || !errors.Is(err, errParts) {
		t.Errorf("got %v", err)
	}
}

// One part that is not what was written is as good as none: the event is refused by
// name, and whoever reads the log raw goes on behind it.
func TestADamagedPartIsFoundAndHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	n, c := setupSmallNode(t)
	e := newEvent(longReport())
	must.NoError(t, appendReport(t.Context(), c, e))
	db := pgtest.NewDB(t, n.dsn)
	const where = ` WHERE stream = $1 AND revision = 1`
	for _, damage := range []string{
		`UPDATE eventlog.events SET data = convert_to(regexp_replace(convert_from(data, 'UTF8'), '^(.*":")(.)', CASE WHEN convert_from(data, 'UTF8') ~ '":"A' THEN '\1B' ELSE '\1A' END), 'UTF8')`, // another first letter
		`UPDATE eventlog.events SET data = 'no JSON'`,
		`UPDATE eventlog.events SET data = '{}'`,
	} {
		done, err := db.ExecContext(t.Context(), damage+where, origin.PartStream(e.ID))
		must.NoError(t, err)
		if rows, err := done.RowsAffected(); err != nil || rows != 1 {
			t.Fatalf("%d rows, %v: %s", rows, err, damage)
		}
		n.stop() // nothing of before is in its memory
		n.start()
		var undecodable *DecodeError
		err = c.Load(t.Context(), "job-long", 0, func(domain.Recorded) error { return nil })
		if !errors.As(err, &undecodable) || !errors.Is(err, errParts) || !strings.Contains(err.Error(), "job-long") {
			t.Errorf("%s: %v", damage, err)
		}
		events, _, _, err := c.ReadAllRaw(t.Context(), domain.Position{}, true, 100)
		if err != nil {
			t.Fatalf("%s: %v", damage, err)
		}
		whole, refused := 0, 0
		for _, raw := range events {
			switch _, err := raw.Decode(); {
			case err == nil:
				whole++
			case raw.ID == e.ID && errors.Is(err, errParts):
				refused++
			case !strings.HasPrefix(raw.Stream, origin.PartStream(e.ID)):
				t.Errorf("%s: %s: %v", damage, raw.Stream, err)
			}
		}
		if refused != 1 || whole < 2 {
			t.Errorf("%s: %d events refused, %d decode", damage, refused, whole)
		}
	}
}
