package projections_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections"
)

var update = flag.Bool("update", false, "write the golden log if it is missing, and the sums of its rows")

const (
	goldenLog  = "testdata/golden-log.ndjson"
	goldenSums = "testdata/golden-log.sums.json"
)

// goldenEvent is one of the golden log, as it was stored.
type goldenEvent struct {
	Stream string
	ID     uuid.UUID
	Type   string
	Meta   json.RawMessage
	Data   json.RawMessage
}

// goldenModel is what a read model of a version makes of the golden log.
type goldenModel struct {
	Version int
	Tables  map[string]string // rows and checksum
}

// The golden log was written by an earlier version and is never rewritten: what
// it led to then it leads to now, row by row, unless a read model's version says
// that its rows are others.
func TestTheGoldenLogLeadsToTheSameRows(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(goldenLog); errors.Is(err, fs.ErrNotExist) && *update {
		writeGoldenLog(t)
	}
	w := setup(t)
	readGoldenLog(t, w.Log)
	w.Run(w.Sup)
	got := map[string]goldenModel{}
	for _, c := range projections.All() {
		p, ok := c.(consumer.Projector)
		if !ok {
			continue
		}
		w.Eventually(p.Name()+" has seen everything", func() bool { return w.Status(p.Name()).Position == w.Log.Head() })
		got[p.Name()] = goldenModel{Version: p.Version(), Tables: sums(t, w.World, p)}
	}
	if *update {
		text, err := json.MarshalIndent(got, "", "  ")
		if err == nil {
			err = os.WriteFile(goldenSums, append(text, '\n'), 0o644) //nolint:gosec // golden
		}
		must.NoError(t, err)
		return
	}
	text, err := os.ReadFile(goldenSums)
	must.NoError(t, err)
	var want map[string]goldenModel
	must.NoError(t, json.Unmarshal(text, &want))
	for name := range want {
		if _, there := got[name]; !there {
			t.Errorf("the read model %s is gone. Is it meant to be? Then -update.", name)
		}
	}
	for name, is := range got {
		switch was, known := want[name]; {
		case !known || was.Version != is.Version:
			t.Errorf("%s of version %d has no sums yet: run this test with -update", name, is.Version)
		case !reflect.DeepEqual(was, is):
			t.Errorf("%s makes other rows of the golden log than before:\n%v\nwere\n%v\nAre they meant to differ? Then its Version goes up, and -update.", name, is.Tables, was.Tables)
		}
	}
}

// sums is the number of rows and their checksum, by table.
func sums(t *testing.T, w *modeltest.World, p consumer.Projector) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := pgpool.InTx(w.Ctx(), w.DB, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(w.Ctx(), `SET LOCAL TimeZone = 'UTC'`); err != nil {
			return err
		}
		for _, table := range p.Tables() {
			var sum string
			err := tx.GetContext(w.Ctx(), &sum, `SELECT COUNT(*) || ' rows, ' || md5(COALESCE(string_agg(to_jsonb(r)::text, E'\n' ORDER BY to_jsonb(r)::text COLLATE "C"), '')) FROM readmodel.`+table.Name+` r`)
			if err != nil {
				return err
			}
			out[table.Name] = sum
		}
		return nil
	})
	must.NoError(t, err)
	return out
}

func readGoldenLog(t *testing.T, log *logtest.Memory) {
	t.Helper()
	file, err := os.Open(goldenLog)
	must.NoError(t, err)
	defer func() { _ = file.Close() }() // it is only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	next := map[string]domain.ExpectedRevision{}
	for lines.Scan() {
		var g goldenEvent
		must.NoError(t, json.Unmarshal(lines.Bytes(), &g))
		event, meta, err := eventstore.Decode(g.Type, g.Data, g.Meta)
		if err != nil || event == nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		expected, seen := next[g.Stream]
		if !seen {
			expected = domain.NoStream
		}
		_, err = log.Append(t.Context(), g.Stream, expected, []domain.NewEvent{{ID: g.ID, Event: event, Meta: meta}})
		must.NoError(t, err)
		next[g.Stream] = expected + 1
	}
	if err := lines.Err(); err != nil || len(log.All()) < 300 {
		t.Fatalf("%d events, %v", len(log.All()), err)
	}
}

// writeGoldenLog writes the lives that the tests know, once.
func writeGoldenLog(t *testing.T) {
	t.Helper()
	log := logtest.New()
	modeltest.Everything(log)
	modeltest.Hours(log)
	modeltest.Lives(log, "life", 60)
	if err := os.MkdirAll("testdata", 0o755); err != nil { //nolint:gosec // golden
		t.Fatal(err)
	}
	file, err := os.Create(goldenLog)
	must.NoError(t, err)
	enc := json.NewEncoder(file)
	enc.SetEscapeHTML(false)
	for i, r := range log.All() {
		if r.Event == nil {
			continue
		}
		meta := r.Meta
		if meta.Time.IsZero() {
			meta.Time = modeltest.Noon
		}
		data, stored, err := eventstore.Encode(domain.NewEvent{Event: r.Event, Meta: meta})
		if err == nil {
			err = enc.Encode(goldenEvent{Stream: r.Stream, ID: uuid.NewSHA1(uuid.NameSpaceURL, fmt.Append(nil, "golden-log/", i)), Type: r.Type, Meta: stored, Data: data})
		}
		must.NoError(t, err)
	}
	must.NoError(t, file.Close())
}
