package dashboard

import (
	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
)

type batchView struct {
	ID                     string
	Lines                  []jobLine
	Pass, Fail, Open, Rest int // jobs; Rest ended without a verdict
	Price                  domain.Credits
	Bar                    []ui.Segment
}

// batch is what was submitted with one POST /v1/jobs/bulk.
func (d Deps) batch(r *ui.Request) (ui.Answer, error) {
	list, err := find(r, "batch", d.Reads.Jobs.Batch)
	if err != nil {
		return ui.Answer{}, err
	}
	v := batchView{ID: r.PathValue("id")}
	var live []string
	for _, j := range list {
		v.add(j)
		live = append(live, domain.JobStream(j.ID))
	}
	v.Bar = ui.BarOf(ui.Part{Kind: "pass", N: v.Pass}, ui.Part{Kind: "fail", N: v.Fail}, ui.Part{Kind: "skip", N: v.Rest}, ui.Part{Kind: "pending", N: v.Open})
	return ui.Show("batch", "Batch of "+ui.Count(len(list), "test"), v, live...)
}

func (v *batchView) add(j jobs.Outline) {
	v.Lines = append(v.Lines, lineOf(j.Summary()))
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
