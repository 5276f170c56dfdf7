package projections

import (
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/project"
)

// cutAnyhow folds the log into three schemas, one event, seven events and all
// events at a time, and compares every row.
func (w *world) cutAnyhow(p Projector) {
	w.t.Helper()
	handles := map[string]bool{}
	for _, name := range p.Handles() {
		handles[name] = true
	}
	var events []domain.Recorded
	for _, r := range w.log.events {
		if handles[r.Type] {
			events = append(events, r)
		}
	}
	sizes := []int{1, 7, len(events)}
	for _, size := range sizes {
		schema := fmt.Sprint("cut", size)
		err := inTx(w.ctx(), w.sup.db, func(tx *sqlx.Tx) error {
			if err := createTables(w.ctx(), tx, p, schema); err != nil {
				return err
			}
			for rest := events; len(rest) > 0; {
				n := min(size, len(rest))
				if err := p.Apply(w.ctx(), tx, schema, rest[:n]); err != nil {
					return fmt.Errorf("%d events at a time: %w", size, err)
				}
				rest = rest[n:]
			}
			return nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	for _, size := range sizes[1:] {
		w.equal(p, "cut1", fmt.Sprint("cut", size))
	}
	for _, table := range p.Tables() {
		if w.count("SELECT COUNT(*) FROM cut1."+table.Name) == 0 && table.Name != "job_sandboxes" {
			w.t.Errorf("nothing came into %s: it was not tested", table.Name)
		}
	}
}

// everything appends projects, jobs and fixes that meet whatever there is.
func everything(m *memoryLog) {
	for i, id := range []string{"p1", "p2"} {
		stream := domain.ProjectStream(id)
		m.append(stream, &project.Created{AccountID: fmt.Sprint("acc", i), Name: id, HookHash: id, At: noon},
			prepared("x"+id, "mail", "pay"), prepared("y"+id, "cart", "mail"))
		for j := range 12 {
			m.append(stream, &project.RegressionsAttached{
				JobIDs: []string{fmt.Sprint("bstory", 4*j+1+i), fmt.Sprint("bstory", 4*j+3-i)}, Items: []string{"y" + id + "1"}, At: noon,
			})
		}
	}
	lives(m, "a", 60)
	stories(m, "b", 60)
	m.append(domain.ProjectStream("p1"), prepared("z", "mail", "later"), &project.SettingsChanged{Name: "shop", At: noon})
}

func TestHowTheLogIsCutDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, p := range []Projector{jobsProjector{}, historyProjector{}, eventsProjector{}} {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			everything(w.log)
			w.cutAnyhow(p)
		})
	}
}

func TestWhatWasFoldedLiveIsWhatARebuildMakes(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	everything(w.log)
	for _, p := range []Projector{jobsProjector{}, historyProjector{}, eventsProjector{}} {
		w.eventually(p.Name()+" has seen everything", func() bool { return w.status(p.Name()).Position == w.log.Head() })
		live := w.status(p.Name()).Schema
		if err := w.sup.Rebuild(w.ctx(), p.Name(), nil); err != nil {
			t.Fatal(err)
		}
		w.equal(p, live, w.status(p.Name()).Schema)
	}
}
