package dashboard

import (
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

type batchesView struct {
	Batches []batchLine
	Pager   ui.Pager
	MayAdd  bool
}

type batchLine struct {
	jobs.BatchSummary
	Bar []ui.Segment
}

// batches lists the account's batches.
func (d Deps) batches(r *ui.Request) (ui.Answer, error) {
	page := ui.PageOf(r)
	list, total, err := d.Reads.Jobs.Batches(r.Context(), r.Account.ID, ui.PageSize, (page-1)*ui.PageSize)
	if err != nil {
		return ui.Answer{}, err
	}
	v := batchesView{Pager: ui.NewPager(r, page, len(list), total), MayAdd: r.May(person.Developer)}
	for _, b := range list {
		v.Batches = append(v.Batches, batchLine{b, ui.BarOf(b.Pass, b.Fail, b.Rest, b.Open)})
	}
	return ui.Show("batches", "Batches", v, ui.Everything), nil
}

type batchView struct {
	ID                     string
	Lines                  []words.JobLine
	Pass, Fail, Open, Rest int // jobs; Rest ended without a verdict
	Waiting                int // jobs that can be cancelled, of Open
	Price, RetestPrice     domain.Credits
	Bar                    []ui.Segment
	MayAdd                 bool
}

// batch shows the jobs of one bulk submission (POST /v1/jobs/bulk).
func (d Deps) batch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	v := batchView{ID: r.PathValue("id"), MayAdd: r.May(person.Developer)}
	var live []string
	for _, j := range list {
		v.add(j)
		live = append(live, domain.JobStream(j.ID))
	}
	v.Bar = ui.BarOf(v.Pass, v.Fail, v.Rest, v.Open)
	return ui.Show("batch", "Batch of "+ui.Count(len(list), "test"), v, live...), nil
}

func (v *batchView) add(j jobs.Outline) {
	v.Lines = append(v.Lines, words.LineOf(j.Summary()))
	v.Price += j.CreditsUsed()
	v.RetestPrice += j.Price
	if j.Status == job.StatusPending {
		v.Waiting++
	}
	switch {
	case !j.IsFinal():
		v.Open++
	case j.OverallStatus == job.OverallPass:
		v.Pass++
	case j.OverallStatus == job.OverallFail:
		v.Fail++
	default:
		v.Rest++
	}
}

// cancelBatch cancels the tests of the batch that wait.
func (d Deps) cancelBatch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	at, err := d.Commands.CancelJobs(r.Context(), r.Cause(), wire.List(list, outlineID), "client")
	return r.Done(at, err, "/dashboard/batches/"+r.PathValue("id"))
}

// retestBatch submits the tests of the batch as another one.
func (d Deps) retestBatch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	if err := d.Limits.StillAllowed(r.Context(), r.Account, list...); err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.RetestBatch(r.Context(), r.Cause(), wire.List(list, outlineID))
	return r.Done(out.Position, err, "/dashboard/batches/"+out.BatchID)
}

func outlineID(j jobs.Outline) string { return j.ID }
