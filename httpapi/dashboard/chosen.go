package dashboard

import (
	"slices"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// maxChosen bounds the tests that one press takes; the next press goes on.
const maxChosen = command.CancelledAtOnce

// chosenView shows tests of a list, and what one press does to all of them.
type chosenView struct {
	Query, Back string // of the list
	Lines       []jobs.Found
	More        bool // the list has more than these
	Waiting     int  // tests that can be cancelled
	Refund      domain.Credits
	Price       domain.Credits // of all of them again
}

// chosen shows the tests that were ticked in the list, or all that its filter finds.
func (d Deps) chosen(r *ui.Request) (ui.Answer, error) {
	filter, search, err := formsFilter(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v := chosenView{Query: filter.Query(), Back: filter.href()}
	if r.FormValue("all") != "" {
		search.Limit = maxChosen
		found, err := d.Reads.Jobs.Find(r.Context(), r.Account.ID, search)
		if err != nil {
			return ui.Answer{}, err
		}
		r.Form["job"], v.More = wire.List(found.Page, func(f jobs.Found) string { return f.ID }), found.More
	}
	list, err := d.ticked(r)
	for _, j := range list {
		v.Lines = append(v.Lines, jobs.Found{Summary: j.Summary()})
		v.Price += j.Price
		if j.Status == job.StatusPending && j.SessionID == "" {
			v.Waiting++
			v.Refund += j.Price
		}
	}
	return ui.Show("chosen", "Chosen tests", v), err
}

// ticked gives those of the form's tests that are the account's; it needs one. It leaves out those
// whose texts were erased: they have ended, and nothing is left to submit again.
func (d Deps) ticked(r *ui.Request) ([]jobs.Outline, error) {
	ids := r.Form["job"]
	list, err := d.Reads.Jobs.Chosen(r.Context(), r.Account.ID, ids[:min(len(ids), maxChosen)])
	list = slices.DeleteFunc(list, func(j jobs.Outline) bool { return j.ErasedAt != nil })
	if err == nil && len(list) == 0 {
		err = domain.Conflict("no test was chosen").WithHint("tick tests in the list, then press the button below it")
	}
	return list, err
}

// cancelChosen cancels the tests of the form that wait.
func (d Deps) cancelChosen(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	filter, _, err := formsFilter(r)
	if err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.CancelJobs(r.Context(), r.Cause(), wire.List(list, jobs.Outline.Key), "client")
	return r.Done(out.Position, err, filter.href())
}

// retestChosen submits the tests of the form again, as one batch: all of them or none.
func (d Deps) retestChosen(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	return d.retestAll(r, "", list)
}
