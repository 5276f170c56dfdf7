package auditlog_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/gauges"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/auditlog"
)

func TestHowTheLogIsCutDoesNotMatterToTheTree(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, auditlog.Projector{})
	modeltest.Lives(w.Log, "a", 150) // more than a tile
	w.CutAnyhow(auditlog.Projector{})
}

// A witness sees what nobody can decode and what nobody knows, and an operator's
// skip takes nothing away from it.
func TestEveryEventIsALeaf(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, auditlog.Projector{})
	modeltest.Lives(w.Log, "a", 3)
	w.Log.Record("job-odd", logtest.Unknown("job.odd"))
	bad := w.Log.Record("job-bad", modeltest.Claimed("ann"))
	w.Log.Spoil(bad.Commit, true)
	w.Exec(`INSERT INTO projection_skips (name, commit_position, prepare_position, detail, who, why) VALUES ($1, 1, 1, '', 'x', 'x')`, auditlog.Name)
	modeltest.Lives(w.Log, "b", 1)
	w.Run(w.Sup)
	w.Eventually("the tree holds every event", func() bool { return w.Status(auditlog.Name).Position == w.Log.Head() })
	if got, want := w.Count(`SELECT COUNT(*) FROM readmodel.tree_leaves`), len(w.Log.All()); got != want {
		t.Errorf("%d leaves of %d events", got, want)
	}
	w.Sound(w.Sup, auditlog.Name)
}

func TestAnEventIsProvedToBeInTheLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.lives(280) // more than two tiles
	first := w.sign()
	w.lives(1)
	second := w.sign()
	tree := auditlog.NewTree(w.db)
	for _, position := range []int64{1, 2, 256, 257, 512, 513, 560} {
		for _, in := range []auditlog.Checkpoint{first, second} {
			proof, err := auditlog.Prove(w.ctx(), tree, uuid.MustParse(w.event(position).ID), in)
			must.NoError(t, err)
			text, err := json.Marshal(proof)
			must.NoError(t, err)
			said, ok := w.standalone(w.file(string(text)), in)
			if want := fmt.Sprintf("ok: event %s (", proof.Event.ID); !ok || !strings.HasPrefix(said, want) {
				t.Errorf("position %d of %d: %s", position, in.Size, said)
			}
			proof.Event.Type += "x"
			if text, err = json.Marshal(proof); err != nil {
				t.Fatal(err)
			}
			if said, ok := w.standalone(w.file(string(text)), in); ok {
				t.Errorf("another event at position %d of %d: %s", position, in.Size, said)
			}
		}
	}
	young := uuid.MustParse(w.event(561).ID)
	if _, err := auditlog.Prove(w.ctx(), tree, young, first); err == nil || !strings.Contains(err.Error(), "came behind the checkpoint") {
		t.Errorf("a young event in an old checkpoint: %v", err)
	}
	if _, err := auditlog.Prove(w.ctx(), tree, uuid.New(), second); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("no event: %v", err)
	}
	path, err := tree.Consistency(w.ctx(), second.Size, first.Size)
	if err == nil {
		err = tlog.CheckTree(path, second.Size, second.Root, first.Size, first.Root)
	}
	if err != nil {
		t.Errorf("the second does not go on from the first: %v", err)
	}
}

// An account that is erased loses its data key, and its secrets with it. No
// event changes, so everything that was signed and proved still is; and an
// export never had the secret's bytes.
func TestSealedFieldsAndTheirErasureKeepEveryProof(t *testing.T) {
	t.Parallel()
	w := setup(t)
	sealed, err := w.vault.Seal(w.ctx(), "acc", "job-s", []byte("pass-word"))
	must.NoError(t, err)
	id := uuid.New()
	_, err = w.log.Append(w.ctx(), "job-s", domain.NoStream, []domain.NewEvent{
		{ID: id, Event: modeltest.Created("acc", func(e *job.Created) { e.Credentials = sealed }), Meta: domain.Metadata{Time: w.now}},
		{ID: uuid.New(), Event: modeltest.Claimed("ann"), Meta: domain.Metadata{Time: w.now}},
	})
	must.NoError(t, err)
	kept := w.sign()
	proof, err := auditlog.Prove(w.ctx(), auditlog.NewTree(w.db), id, kept)
	must.NoError(t, err)
	must.NoError(t, w.vault.Shred(w.ctx(), "acc"))
	w.lives(1)
	w.sign()
	if check, found := w.check(kept); told(found) != "" || check.Signed != 3 {
		t.Errorf("%d checkpoints, %s", check.Signed, told(found))
	}
	file := w.export(kept)
	if said, ok := w.standalone(file, kept); !ok {
		t.Error(said)
	}
	var lines []map[string]any
	for line := range strings.Lines(w.read(file)) {
		var l map[string]any
		must.NoError(t, json.Unmarshal([]byte(line), &l))
		lines = append(lines, l)
	}
	if strings.Contains(w.read(file), sealed) || len(lines) != 4 {
		t.Errorf("the export shows what is sealed, or is not 4 lines: %v", lines)
	}
	secret, _ := lines[1]["event"].(map[string]any)
	plain, _ := lines[2]["event"].(map[string]any)
	if secret["data"] != nil || secret["dataHash"] != proof.Event.DataHash || plain["data"] == nil {
		t.Errorf("got %v and %v", secret, plain)
	}
}

const manyLeavesSQL = `
INSERT INTO {audit}.tree_leaves (index, commit_position, prepare_position, revision, created, id, stream, type, data, metadata, is_json)
SELECT n, n, n, 0, n, md5(n::text)::uuid, 'job-' || n, 'job.created', sha256('d'), sha256('m'), true
FROM generate_series(0, 29999) n`

// What autovacuum does behind the writer.
const summarizeSQL = `
SELECT brin_summarize_new_values(i.indexrelid)
FROM pg_index i
JOIN pg_class c
  ON c.oid = i.indexrelid
JOIN pg_am a
  ON a.oid = c.relam
WHERE i.indrelid = '{audit}.tree_leaves'::regclass
  AND a.amname = 'brin'`

// An event is looked for among a few pages of a long tree, and not in all.
func TestAnEventIsFoundByTheBloomFilters(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, auditlog.Projector{})
	w.Exec(manyLeavesSQL)
	w.Exec(summarizeSQL)
	w.Exec("ANALYZE {audit}.tree_leaves")
	var id uuid.UUID
	must.NoError(t, w.DB.GetContext(w.Ctx(), &id, "SELECT md5('12345')::uuid"))
	var plan []string
	must.NoError(t, w.DB.SelectContext(w.Ctx(), &plan, "EXPLAIN (ANALYZE) "+auditlog.LeafByIDSQL, id))
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "Bitmap Index Scan") {
		t.Errorf("the index of the ids is not used:\n%s", text)
	}
	if l, found, err := auditlog.NewTree(w.DB).Find(w.Ctx(), id); err != nil || !found || l.Index != 12345 {
		t.Errorf("%v %v %v", l, found, err)
	}
}

func TestTheKeeperTellsOfWhatACheckAndASigningFound(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.bind()
	w.lives(1)
	w.sign()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	k := auditlog.NewKeeper(w.signer, quiet)
	k.SetEvery(5 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		must.NoError(t, <-ran)
	})
	says := func(findings float64, problem string) {
		t.Helper()
		eventually.True(t, "the keeper tells", func() bool {
			is, err := w.signer.Problem(w.ctx())
			return err == nil && gauges.Of(t, k)["humanqa_audit_findings"] == findings && strings.HasPrefix(is, problem) && (is == "") == (problem == "")
		})
	}
	says(0, "")
	if got, known := gauges.Of(t, k)["humanqa_audit_checkpoint_age_seconds"]; !known || got != 0 {
		t.Errorf("all is signed, and the checkpoint is %v old", got)
	}

	must.NoError(t, w.signer.Found(w.ctx(), 2))
	says(2, "the audit of the whole log has 2 findings")
	must.NoError(t, w.signer.Found(w.ctx(), 0))
	says(0, "")

	w.forge(2, "credits-rich", "")
	w.lives(1)
	says(1, "no checkpoint is signed: the log holds what this service did not write")
	if got := gauges.Of(t, k)["humanqa_audit_checkpoint_age_seconds"]; got < 0 {
		t.Errorf("the checkpoint is %v old", got)
	}
}

func TestTheKeeperSignsWhileSomethingHappens(t *testing.T) {
	t.Parallel()
	w := setup(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	keepers := make(chan error, 2)
	ctx, cancel := context.WithCancel(context.Background())
	for range cap(keepers) { // two processes
		k := auditlog.NewKeeper(w.signer, quiet)
		k.SetEvery(5 * time.Millisecond)
		go func() { keepers <- k.Run(ctx) }()
	}
	t.Cleanup(func() {
		cancel()
		for range cap(keepers) {
			if err := <-keepers; err != nil {
				t.Error(err)
			}
		}
	})
	for n := range int64(3) {
		w.lives(1)
		eventually.True(t, "what came is signed", func() bool {
			c, found, err := w.signer.Newest(w.ctx())
			return err == nil && found && c.Size == 2*(n+1)
		})
	}
	var notes int
	if err := w.db.Get(&notes, `SELECT COUNT(*) FROM audit.checkpoints`); err != nil || notes > 6 {
		t.Errorf("%d checkpoints of 6 events, %v: quiet minutes are signed too", notes, err)
	}
	if _, found := w.check(); told(found) != "" {
		t.Error(told(found))
	}
}
