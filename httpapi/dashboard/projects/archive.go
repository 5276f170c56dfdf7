package projects

import (
	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/projections/projects"
)

// archiveChosen archives the projects that were ticked. It leads to the list that restores them.
func (d Deps) archiveChosen(r *ui.Request) (ui.Answer, error) {
	var at domain.Position
	for _, id := range r.PostForm["project"] {
		out, err := d.Commands.ArchiveProject(r.Context(), r.Cause().Step("archive "+id), id, true)
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
		out, err := d.Commands.ArchiveProject(r.Context(), r.Cause(), p.ID, archive)
		return r.Done(out.Position, err, "/dashboard/projects/"+p.ID)
	}
}
