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
	Pager   pager
	MayAdd  bool
}

type batchLine struct {
	jobs.BatchSummary
	Bar []ui.Segment
}

// batches lists what was submitted together.
func (d Deps) batches(r *ui.Request) (ui.Answer, error) {
	page := pageOf(r)
	list, total, err := d.Reads.Jobs.Batches(r.Context(), r.Account.ID, pageSize, (page-1)*pageSize)
	if err != nil {
		return ui.Answer{}, err
	}
	v := batchesView{Pager: newPager(r, page, len(list), total), MayAdd: r.May(person.Developer)}
	for _, b := range list {
		v.Batches = append(v.Batches, batchLine{b, batchBar(b.Pass, b.Fail, b.Rest, b.Open)})
	}
	return ui.Show("batches", "Batches", v, ui.Everything), nil
}

func batchBar(pass, fail, rest, open int) []ui.Segment {
	return ui.BarOf(ui.Part{Kind: "pass", N: pass}, ui.Part{Kind: "fail", N: fail}, ui.Part{Kind: "skip", N: rest},
		ui.Part{Kind: "pending", N: open})
}

type batchView struct {
	ID                     string
	Lines                  []words.JobLine
	Pass, Fail, Open, Rest int // jobs; Rest ended without a verdict
	Price                  domain.Credits
	Bar                    []ui.Segment
}

// batch is what was submitted with one POST /v1/jobs/bulk.
func (d Deps) batch(r *ui.Request, list []jobs.Outline) (ui.Answer, error) {
	v := batchView{ID: r.PathValue("id")}
	var live []string
	for _, j := range list {
		v.add(j)
		live = append(live, domain.JobStream(j.ID))
	}
	v.Bar = batchBar(v.Pass, v.Fail, v.Rest, v.Open)
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
