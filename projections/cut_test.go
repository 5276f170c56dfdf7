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

func TestHowTheLogIsCutDoesNotMatter(t *testing.T) {
	t.Parallel()
	for _, p := range []Projector{jobsProjector{}, historyProjector{}, eventsProjector{}} {
		t.Run(p.Name(), func(t *testing.T) {
			t.Parallel()
			w := setup(t)
			for i, id := range []string{"p1", "p2"} {
				stream := domain.ProjectStream(id)
				w.log.append(stream, &project.Created{AccountID: fmt.Sprint("acc", i), Name: id, HookHash: id, At: noon},
					prepared("x"+id, "mail", "pay"), prepared("y"+id, "cart", "mail"))
				for j := range 12 {
					w.log.append(stream, &project.RegressionsAttached{
						JobIDs: []string{fmt.Sprint("bstory", 4*j+1+i), fmt.Sprint("bstory", 4*j+3-i)}, Items: []string{"y" + id + "1"}, At: noon,
					})
				}
			}
			lives(w.log, "a", 60)
			stories(w.log, "b", 60)
			w.log.append(domain.ProjectStream("p1"), prepared("z", "mail", "later"),
				&project.SettingsChanged{Name: "shop", At: noon})
			w.cutAnyhow(p)
		})
	}
}
