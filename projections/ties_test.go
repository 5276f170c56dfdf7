package projections

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/project"
)

// Decisions, section 2, "List order": createdAt descending, then id descending.
func TestProjectsOfOneInstantAreListedByTheirIDs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	for _, id := range []string{"pb", "pd", "pa", "pc"} {
		w.log.append(domain.ProjectStream(id), &project.Created{AccountID: "acc", Name: id, HookHash: id, At: noon})
	}
	w.log.append(domain.ProjectStream("p0"), &project.Created{AccountID: "acc", Name: "younger", HookHash: "h0", At: *at(1)})
	w.reach(w.sup)
	list, _, err := w.reads.Projects.List(w.ctx(), "acc", ProjectFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range list {
		ids = append(ids, p.ID)
	}
	if got := strings.Join(ids, " "); got != "p0 pd pc pb pa" {
		t.Errorf("the list is %s", got)
	}
}
