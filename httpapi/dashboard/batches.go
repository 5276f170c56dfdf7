package dashboard

import (
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
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
	Price                  domain.Credits
	Bar                    []ui.Segment
}

// batch shows the jobs of one bulk submission (POST /v1/jobs/bulk).
func (d Deps) batch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	v := batchView{ID: r.PathValue("id")}
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
