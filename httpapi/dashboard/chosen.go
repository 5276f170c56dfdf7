package dashboard

import (
	"slices"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// maxChosen bounds the tests that one press takes; the next press goes on.
const maxChosen = 200

// chosenView shows tests of a list, and what one press does to all of them.
type chosenView struct {
	Query, Back string // of the list
	Lines       []jobs.Found
	More        bool // the list has more than these
	Waiting     int  // tests that can be cancelled
	Refund      domain.Credits
	Again       int // tests that can be submitted again
	Price       domain.Credits
}

// chosen shows the tests that were ticked in the list, or all that its filter finds.
func (d Deps) chosen(r *ui.Request) (ui.Answer, error) {
	filter, search, err := formsFilter(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v := chosenView{Query: filter.Query(), Back: filter.href()}
	ids := r.Form["job"]
	if r.FormValue("all") != "" {
		search.Limit = maxChosen
		found, err := d.Reads.Jobs.Find(r.Context(), r.Account.ID, search)
		if err != nil {
			return ui.Answer{}, err
		}
		ids, v.More = wire.List(found.Page, func(f jobs.Found) string { return f.ID }), found.More
	}
	list, err := d.ofIDs(r, ids)
	for _, j := range list {
		v.Lines = append(v.Lines, jobs.Found{Summary: j.Summary()})
		if j.Status == job.StatusPending && j.SessionID == "" {
			v.Waiting++
			v.Refund += j.Price
		}
		if j.ErasedAt == nil {
			v.Again++
			v.Price += j.Price
		}
	}
	return ui.Show("chosen", "Chosen tests", v), err
}

// ofIDs gives those of the tests that are the account's.
func (d Deps) ofIDs(r *ui.Request, ids []string) ([]jobs.Outline, error) {
	return d.Reads.Jobs.Chosen(r.Context(), r.Account.ID, ids[:min(len(ids), maxChosen)])
}

// cancelChosen cancels the tests of the form that wait.
func (d Deps) cancelChosen(r *ui.Request) (ui.Answer, error) {
	filter, _, err := formsFilter(r)
	if err != nil {
		return ui.Answer{}, err
	}
	list, err := d.ofIDs(r, r.PostForm["job"])
	if err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.CancelJobs(r.Context(), r.Cause(), wire.List(list, jobs.Outline.Key), "client")
	return r.Done(out.Position, err, filter.href())
}

// retestChosen submits the tests of the form again, as one batch: all of them or none. A test
// that was erased meanwhile, or before, is left out.
func (d Deps) retestChosen(r *ui.Request) (ui.Answer, error) {
	list, err := d.ofIDs(r, r.PostForm["job"])
	list = slices.DeleteFunc(list, func(j jobs.Outline) bool { return j.ErasedAt != nil })
	switch {
	case err != nil:
		return ui.Answer{}, err
	case len(list) == 0:
		return ui.Answer{}, domain.Conflict("no test was chosen").WithHint("tick tests in the list first")
	}
	return d.retestAll(r, "", list)
}
