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

var update = flag.Bool("update", false, "write the golden log if it is missing, the sums of its rows, and the views into docs/analytics.md")

const goldenSums = "testdata/golden-log.sums.json"

// goldenLogs are read one after the other.
var goldenLogs = []goldenLog{
	{"testdata/golden-log.ndjson", func(log *logtest.Memory) {
		modeltest.Everything(log)
		modeltest.Hours(log)
		modeltest.Lives(log, "life", 60)
	}},
	{"testdata/golden-log.rest.ndjson", modeltest.Rest},
	{"testdata/golden-log.archives.ndjson", modeltest.Archives},
	{"testdata/golden-log.secrets.ndjson", modeltest.Secrets},
	{"testdata/golden-log.refusals.ndjson", modeltest.Refusals},
	{"testdata/golden-log.disputes.ndjson", modeltest.Disputes},
	{"testdata/golden-log.chats.ndjson", modeltest.Chats},
}

// goldenLog is a file, and what wrote it once.
type goldenLog struct {
	file  string
	write func(*logtest.Memory)
}

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

// The golden logs were written by earlier versions and are never rewritten: what
// they led to then they lead to now, row by row, unless a read model's version says
// that its rows are others.
func TestTheGoldenLogLeadsToTheSameRows(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, golden := range goldenLogs {
		if _, err := os.Stat(golden.file); errors.Is(err, fs.ErrNotExist) && *update {
			golden.make(t)
		}
		golden.read(t, w.Log)
	}
	w.Run(w.Sup)
	got := map[string]goldenModel{}
	for _, c := range projections.All() {
		p, ok := c.(consumer.Projector)
		if !ok {
			continue
		}
		for _, kind := range p.Handles() {
			if w.Log.Count(kind) == 0 {
				t.Errorf("no golden log has a %s, which %s folds: have modeltest write it, in one more of goldenLogs, and run this test with -update", kind, p.Name())
			}
		}
		w.Eventually(p.Name()+" has seen everything", func() bool { return w.Status(p.Name()).Position == w.Log.Head() })
		got[p.Name()] = goldenModel{Version: p.Version(), Tables: sums(t, w.World, p)}
	}
	if *update {
		text, err := json.MarshalIndent(got, "", "  ")
		if err == nil {
			err = os.WriteFile(goldenSums, append(text, '\n'), 0o644)
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

func (g goldenLog) read(t *testing.T, log *logtest.Memory) {
	t.Helper()
	file, err := os.Open(g.file)
	must.NoError(t, err)
	defer func() { _ = file.Close() }() // it is only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	next := map[string]domain.ExpectedRevision{}
	for lines.Scan() {
		var e goldenEvent
		must.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		event, meta, err := eventstore.Decode(e.Type, e.Data, e.Meta)
		if err != nil || event == nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		expected, seen := next[e.Stream]
		if !seen {
			expected = domain.NoStream
		}
		_, err = log.Append(t.Context(), e.Stream, expected, []domain.NewEvent{{ID: e.ID, Event: event, Meta: meta}})
		must.NoError(t, err)
		next[e.Stream] = expected + 1
	}
	if err := lines.Err(); err != nil || len(next) == 0 {
		t.Fatalf("%d streams, %v", len(next), err)
	}
}

// make writes the lives that the tests know, once.
func (g goldenLog) make(t *testing.T) {
	t.Helper()
	log := logtest.New()
	g.write(log)
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(g.file)
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
			err = enc.Encode(goldenEvent{Stream: r.Stream, ID: uuid.NewSHA1(uuid.NameSpaceURL, fmt.Append(nil, g.file, "/", i)), Type: r.Type, Meta: stored, Data: data})
		}
		must.NoError(t, err)
	}
	must.NoError(t, file.Close())
}
