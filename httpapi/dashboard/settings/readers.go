package settings

import (
	"time"

	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/ui"
	"humanqa/projections/projects"
)

type readersView struct {
	Readers []readers.Reader
	Names   map[string]string // of projects
	Now     time.Time         // the account's
	Most    int               // readers of an account
}

// readers shows where each named reader of the feed is.
func (d Deps) readers(r *ui.Request) (ui.Answer, error) {
	v := readersView{Most: readers.PerAccount}
	var err error
	if v.Readers, err = d.Readers.Of(r.Context(), r.Account.ID, ""); err != nil {
		return ui.Answer{}, err
	}
	list, _, err := d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsOffered})
	if err != nil {
		return ui.Answer{}, err
	}
	v.Names = words.ProjectNames(list)
	v.Now, err = d.Commands.AccountTime(r.Context(), r.Cause())
	return ui.Show("readers", "Event readers", v), err
}

func (d Deps) forgetReader(r *ui.Request) (ui.Answer, error) {
	err := d.Readers.Forget(r.Context(), r.Account.ID, r.PostFormValue("project"), r.PostFormValue("name"))
	return ui.Go("/dashboard/readers"), err
}
