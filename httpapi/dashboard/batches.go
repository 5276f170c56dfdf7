package dashboard

import (
	"cmp"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// batches lists the account's batches.
func (d Deps) batches(r *ui.Request) (ui.Answer, error) {
	list, err := ui.List(r, func(limit, offset int) ([]jobs.BatchSummary, int, error) {
		return d.Reads.Jobs.Batches(r.Context(), r.Account.ID, limit, offset)
	})
	return ui.Show("batches", "Batches", list, ui.Everything), err
}

type batchView struct {
	ID, Name               string
	Lines                  []jobs.Found
	Pass, Fail, Open, Rest int // jobs; Rest ended without a verdict
	Waiting                int // jobs that can be cancelled, of Open
	Price, RetestPrice     domain.Credits
}

// batch shows the jobs of one bulk submission (POST /v1/jobs/bulk).
func (d Deps) batch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	v := batchView{ID: r.PathValue("id"), Name: list[0].BatchName}
	var live []string
	for _, j := range list {
		v.add(j)
		live = append(live, domain.JobStream(j.ID))
	}
	return ui.Show("batch", cmp.Or(v.Name, "Batch of "+ui.Count(len(list), "test")), v, live...), nil
}

func (v *batchView) add(j jobs.Outline) {
	v.Lines = append(v.Lines, jobs.Found{Summary: j.Summary()})
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
	out, err := d.Commands.CancelJobs(r.Context(), r.Cause(), wire.List(list, jobs.Outline.Key), "client")
	return r.Done(out.Position, err, "/dashboard/batches/"+r.PathValue("id"))
}

// retestBatch submits the tests of the batch as another one.
func (d Deps) retestBatch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	return d.retestAll(r, list[0].BatchName, list)
}

// retestAll submits tests again, as a batch of that name.
func (d Deps) retestAll(r *ui.Request, name string, list []jobs.Outline) (ui.Answer, error) {
	if err := d.Limits.StillAllowed(r.Context(), r.Account, list...); err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.RetestBatch(r.Context(), r.Cause(), name, wire.List(list, jobs.Outline.Key))
	return r.Done(out.Position, err, "/dashboard/batches/"+out.BatchID)
}
