package auditlog_test

import (
	"errors"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
	"humanqa/projections/auditlog"
)

// Each of these is SQL straight on the log's table, past the service. The place
// is named by the tree; the stand-alone verifier agrees, on an export, offline.
func TestWhatWasDoneToTheLogIsFoundAndNamed(t *testing.T) {
	t.Parallel()
	const at = 7
	w := setup(t)
	w.lives(2)
	w.sign()
	w.lives(13)
	kept := w.sign()
	w.lives(2) // younger than what was kept
	w.sign()
	before := w.event(at)
	w.exec(`CREATE TABLE untouched AS SELECT * FROM eventlog.events`)
	for name, c := range map[string]struct {
		do   func(w *world)
		want func(e event) []string
	}{
		"nothing": {func(*world) {}, func(event) []string { return nil }},
		"data is changed": {
			func(w *world) {
				w.exec(`UPDATE eventlog.events SET data = convert_to(replace(convert_from(data, 'UTF8'), 'job 1', 'job 4'), 'UTF8') WHERE position = $1`, at)
			},
			func(e event) []string {
				return []string{"[" + e.Stream + "] was changed: " + e.ID, "(job.created, revision 0 of " + e.Stream + ", position 7/7)", "\n  data: was SHA-256 "}
			},
		},
		"metadata is changed": {
			func(w *world) {
				w.exec(`UPDATE eventlog.events SET metadata = convert_to(replace(convert_from(metadata, 'UTF8'), 'key:k', 'key:x'), 'UTF8') WHERE position = $1`, at)
			},
			func(e event) []string {
				return []string{"[" + e.Stream + "] was changed", "\n  metadata: was SHA-256 "}
			},
		},
		"the type is changed": {
			func(w *world) { w.exec(`UPDATE eventlog.events SET type = 'job.voided' WHERE position = $1`, at) },
			func(e event) []string {
				return []string{"[" + e.Stream + "] was changed", "\n  type: was job.created, is job.voided"}
			},
		},
		"the time is changed": {
			func(w *world) { w.exec(`UPDATE eventlog.events SET created = created - 1 WHERE position = $1`, at) },
			func(e event) []string { return []string{"[" + e.Stream + "] was changed", "\n  time: was "} },
		},
		"it is moved to another stream": {
			func(w *world) { w.exec(`UPDATE eventlog.events SET stream = 'job-other' WHERE position = $1`, at) },
			func(e event) []string {
				return []string{"[" + e.Stream + "] was changed", "\n  stream: was " + e.Stream + ", is job-other"}
			},
		},
		"its id is changed": {
			func(w *world) {
				w.exec(`UPDATE eventlog.events SET event_id = '11111111-1111-4111-8111-111111111111' WHERE position = $1`, at)
			},
			func(e event) []string {
				return []string{"[" + e.Stream + "] was changed", "\n  id: was " + e.ID + ", is 11111111-"}
			},
		},
		"its content type is changed": {
			func(w *world) { w.exec(`UPDATE eventlog.events SET is_json = false WHERE position = $1`, at) },
			func(e event) []string {
				return []string{"[" + e.Stream + "] was changed", "\n  content: was JSON, is octets"}
			},
		},
		"it is dropped": {
			func(w *world) { w.exec(`DELETE FROM eventlog.events WHERE position = $1`, at) },
			func(e event) []string { return []string{"[" + e.Stream + "] is gone from place 6: " + e.ID} },
		},
		"one is put in": {
			func(w *world) {
				w.exec(`UPDATE eventlog.events SET position = -position - 1 WHERE position >= $1`, at)
				w.exec(`UPDATE eventlog.events SET position = -position WHERE position < 0`)
				w.exec(`INSERT INTO eventlog.events SELECT $1::bigint, 0, created, '22222222-2222-4222-8222-222222222222', is_json, 'job-new', type, data, metadata FROM eventlog.events WHERE position = $1::bigint + 1`, at)
			},
			func(event) []string {
				return []string{"[job-new] was put in at place 6: 22222222-2222-4222-8222-222222222222"}
			},
		},
		"two change places": {
			func(w *world) {
				w.exec(`UPDATE eventlog.events SET position = -1 WHERE position = $1`, at)
				w.exec(`UPDATE eventlog.events SET position = $1 WHERE position = $1 + 4`, at)
				w.exec(`UPDATE eventlog.events SET position = $1 + 4 WHERE position = -1`, at)
			},
			func(event) []string { return []string{"was moved to place 6, from 10"} },
		},
		"the end is cut off": {
			func(w *world) { w.exec(`DELETE FROM eventlog.events WHERE position > 25`) },
			func(event) []string {
				return []string{"is gone from place 25", "the log has 25 events, a checkpoint has 30"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				w.exec(`DELETE FROM eventlog.events`)
				w.exec(`INSERT INTO eventlog.events SELECT * FROM untouched`)
			}()
			c.do(w)
			want := c.want(before)

			check, found := w.check(kept)
			text := told(found)
			if len(want) == 0 && (text != "" || check.Signed != 4 || check.Events() != 34) {
				t.Errorf("%d events, %d checkpoints: %s", check.Events(), check.Signed, text)
			}
			for _, part := range want {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not told in\n%s", part, text)
				}
			}
			for _, f := range found {
				if n := strings.Count(f.Problem, "\n"); n >= 10 {
					t.Errorf("%d lines: %s", n+1, f.Problem)
				}
			}
			said, ok := w.standalone(w.export(kept), kept)
			if ok != (len(want) == 0) {
				t.Errorf("the stand-alone verifier says %v: %s", ok, said)
			}
			if (name == "data is changed" || name == "the type is changed") && !strings.Contains(said, "event "+before.ID) {
				t.Errorf("the stand-alone verifier does not name %s: %s", before.ID, said)
			}
		})
	}
}

// Who has the database, though not the keyset, changes an event and makes the
// tree anew, and takes away whatever of the checkpoints does not fit: what
// somebody else has kept finds it.
func TestARewriteOfEventsAndTreeIsFoundByAnOlderCheckpoint(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.lives(5)
	early := w.sign()
	w.lives(10)
	kept := w.sign()
	w.exec(`UPDATE eventlog.events SET data = convert_to(replace(convert_from(data, 'UTF8'), 'job 2', 'job 9'), 'UTF8') WHERE position = 15`)
	w.restart() // as whoever has the database can wait for
	must.NoError(t, w.sup.RebuildAll(w.ctx(), []string{auditlog.Name}, nil))
	// The stored ones tell by themselves,
	_, found := w.check()
	if text := told(found); !strings.Contains(text, "the first 30 events are not those of the checkpoint") ||
		!strings.Contains(text, "the first 10 are those of an earlier one: the first difference is behind position 10/10 and not behind 30/30\n  the tree was rewritten too") {
		t.Errorf("the stored checkpoints tell\n%s", text)
	}
	// and nothing more is signed.
	w.lives(1)
	w.grown()
	if _, _, err := w.signer.Sign(w.ctx()); !errors.Is(err, auditlog.ErrForked) {
		t.Errorf("a rewritten log is signed: %v", err)
	}
	w.exec(`DELETE FROM audit.checkpoints`)
	if _, found := w.check(); told(found) != "[] the database has 0 checkpoints, up to 0 events; 2 were signed, up to 30\n" {
		t.Errorf("checkpoints that were taken away tell\n%s", told(found))
	}
	must.NoError(t, w.signer.Accept(w.ctx())) // as whoever has the database can
	if _, found := w.check(); told(found) != "" {
		t.Errorf("without a checkpoint there is nothing to tell: %s", told(found))
	}
	if _, found := w.check(early); told(found) != "" {
		t.Errorf("the checkpoint of before holds: %s", told(found))
	}
	if _, found := w.check(early, kept); !strings.Contains(told(found), "the first difference is behind position 10/10 and not behind 30/30\n  the tree was rewritten too") {
		t.Errorf("the kept checkpoint tells\n%s", told(found))
	}
	again := w.sign() // it knows no better now
	if said, ok := w.standalone(w.export(again), kept); ok || !strings.Contains(said, "the first 30 events are not those that were signed") {
		t.Errorf("the stand-alone verifier says %v: %s", ok, said)
	}
}

func TestAnotherKeyIsNotTheLogs(t *testing.T) {
	t.Parallel()
	w, other := setup(t), setup(t)
	w.lives(1)
	other.lives(1)
	mine, theirs := w.sign(), other.sign()
	verifier, err := w.signer.Verifier(w.ctx())
	must.NoError(t, err)
	for name, signed := range map[string]string{
		"another log's":    theirs.Note,
		"a changed size":   strings.Replace(mine.Note, "\n2\n", "\n1\n", 1),
		"no signature":     strings.Split(mine.Note, "\n\n")[0] + "\n\n",
		"nothing":          "",
		"a cut-off note":   mine.Note[:len(mine.Note)-8],
		"somebody's words": "hello\n1\nworld\n\n— x y\n",
	} {
		if _, err := auditlog.Open(signed, verifier); !errors.Is(err, auditlog.ErrNotSigned) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := auditlog.Open(strings.TrimSuffix(mine.Note, "\n"), verifier); err != nil || got.Note != mine.Note {
		t.Errorf("without its last line feed: %v", err)
	}
	if got, err := auditlog.Open(mine.Note, verifier+"\n"); err != nil || got.Size != 2 || got.Root != mine.Root || got.Position != mine.Position || !got.Time.Equal(mine.Time) {
		t.Errorf("%+v, %v, want %+v", got, err, mine)
	}
	w.exec(`UPDATE audit.checkpoints SET note = $1`, theirs.Note)
	if _, found := w.check(); !strings.Contains(told(found), "the stored checkpoint of 2 events: no checkpoint that this log has signed") {
		t.Errorf("a stored checkpoint of another log: %s", told(found))
	}
}

// The tree itself is checked, too: a proof is worth no more than its hashes.
func TestADamagedTreeIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ query, want string }{
		"a hash":         {`UPDATE readmodel.tree_tiles SET hashes = set_byte(hashes, 70, get_byte(hashes, 70) # 1)`, "the tree's hash of leaf 2 is not that of"},
		"a leaf":         {`UPDATE readmodel.tree_leaves SET type = 'job.voided' WHERE index = 2`, "the tree's hash of leaf 2 is not that of"},
		"a leaf is gone": {`DELETE FROM readmodel.tree_leaves WHERE index = 2`, "the tree has no leaf 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			w.lives(3)
			w.sign()
			w.exec(c.query)
			if _, found := w.check(); !strings.Contains(told(found), c.want) {
				t.Errorf("%q is not told in\n%s", c.want, told(found))
			}
		})
	}
}
