package console

import (
	"slices"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
	"humanqa/projections/overall"
)

type jobsView struct {
	Text     string
	Status   string
	Statuses []tab
	Lines    []overall.Job
	Pager    ui.Pager
}

type tab struct {
	Text, Value string
	Current     bool
}

func (d Deps) jobs(r *ui.Request) (ui.Answer, error) {
	v := jobsView{Text: textOf(r), Status: r.FormValue("status")}
	states := []job.Status{job.StatusPending, job.StatusClaimed, job.StatusCompleted, job.StatusCancelled, job.StatusFailed}
	if !slices.Contains(states, job.Status(v.Status)) {
		v.Status = ""
	}
	v.Statuses = append(v.Statuses, tab{"All", "", v.Status == ""})
	for _, s := range states {
		v.Statuses = append(v.Statuses, tab{string(s), string(s), v.Status == string(s)})
	}
	page := pageOf(r)
	page.Limit++ // says whether there are more
	lines, err := d.Reads.Overall.Jobs(r.Context(), overall.JobFilter{Text: v.Text, Status: v.Status}, page)
	if err != nil {
		return ui.Answer{}, err
	}
	total := page.Offset + len(lines)
	v.Lines = lines[:min(len(lines), ui.PageSize)]
	v.Pager = ui.NewPager(r, ui.PageOf(r), len(v.Lines), total)
	return ui.Show("console-jobs", "Jobs", v), nil
}

type jobView struct {
	overall.Job
	lookView
	Checker   string
	Report    jobs.Job // only after a look was recorded
	Summary   string
	Completed bool
}

func (d Deps) job(r *ui.Request) (ui.Answer, error) {
	id, err := idOf(r, "job")
	if err != nil {
		return ui.Answer{}, err
	}
	ctx := r.Context()
	v := jobView{}
	if v.Job, err = d.Reads.Overall.Job(ctx, id); err != nil {
		return ui.Answer{}, err
	}
	if v.lookView, err = d.lookInto(r, domain.JobStream(id), v.AccountID); err != nil {
		return ui.Answer{}, err
	}
	if v.CheckerID != "" {
		if list, _, err := d.Reads.Overall.Checkers(ctx, v.CheckerID, "", overall.Page{Limit: 1}); err != nil {
			return ui.Answer{}, err
		} else if len(list) > 0 {
			v.Checker = list[0].Name
		}
	}
	if v.Open {
		if v.Report, err = d.Reads.Jobs.Job(ctx, v.AccountID, id); err != nil {
			return ui.Answer{}, err
		}
		report, err := d.Reads.Jobs.Report(ctx, v.AccountID, id)
		if err != nil && !domain.IsKind(err, domain.KindNotFound) {
			return ui.Answer{}, err
		}
		v.Summary, v.Completed = report.Summary, err == nil
	}
	return ui.Answer{Template: "console-job", Title: "Job " + id, View: v, Secret: v.Open}, nil
}
