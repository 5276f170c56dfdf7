package projects

import (
	"slices"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/projects"
)

// archiveChosen archives the projects that were ticked. It leads to the list that restores them.
func (d Deps) archiveChosen(r *ui.Request) (ui.Answer, error) {
	var at domain.Position
	ids := r.PostForm["project"]
	if len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return !wire.IDPattern.MatchString(id) }) {
		return ui.Answer{}, domain.Conflict("no project was chosen").WithHint("tick projects in the list first")
	}
	for _, id := range ids {
		_, out, err := d.Commands.ArchiveProject(r.Context(), r.Cause().Step(id), id, true, max(1, command.CancelledAtOnce/len(ids)))
		if err != nil {
			return ui.Answer{}, err
		}
		at = at.Max(out.Position)
	}
	return r.Done(at, nil, "/dashboard/projects?show="+showArchived)
}

// archive archives a project, or restores it.
func (d Deps) archive(archive bool) ui.Handler[projects.Project] {
	return func(r *ui.Request, p projects.Project) (ui.Answer, error) {
		_, out, err := d.Commands.ArchiveProject(r.Context(), r.Cause(), p.ID, archive, command.CancelledAtOnce)
		return r.Done(out.Position, err, "/dashboard/projects/"+p.ID)
	}
}
