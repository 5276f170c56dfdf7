package console

import (
	"context"
	"slices"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/oversight"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
	"humanqa/projections/overall"
	"humanqa/projections/people"
)

type jobsView struct {
	Text     string
	Status   string
	Statuses []job.Status
	Lines    []overall.Job
	Pager    ui.Pager
}

func (d Deps) jobs(r *ui.Request) (ui.Answer, error) {
	v := jobsView{Text: textOf(r), Status: r.FormValue("status"), Statuses: []job.Status{
		job.StatusPending, job.StatusClaimed, job.StatusCompleted, job.StatusCancelled, job.StatusFailed,
	}}
	if !slices.Contains(v.Statuses, job.Status(v.Status)) && v.Status != overall.Disputed {
		v.Status = ""
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
	return ui.Show("console-jobs", "Tests", v), nil
}

type jobView struct {
	overall.Job
	lookView
	Checker   string
	Report    jobs.Job // only after a look was recorded
	Summary   string
	Completed bool
	Disputes  []disputeView
	Rulings   []job.Ruling
}

// disputeView is a disputed verdict with its evidence.
type disputeView struct {
	job.Dispute
	Item     job.ReportItem
	Pictures []string // links
}

// disputes are those of the report. Pictures that are gone have no link.
func (d Deps) disputes(ctx context.Context, j jobs.Job) (list []disputeView, err error) {
	for _, of := range j.Disputes {
		v := disputeView{Dispute: of}
		v.Item = j.Items[slices.IndexFunc(j.Items, func(i job.ReportItem) bool { return i.ID == of.ItemID })]
		for _, stored := range v.Item.Screenshots() {
			link, err := d.Link(ctx, j.AccountID, stored)
			if err != nil {
				return nil, err
			}
			v.Pictures = append(v.Pictures, ui.SafeLink(link))
		}
		list = append(list, v)
	}
	return list, nil
}

func (d Deps) job(r *ui.Request, of overall.Job) (_ ui.Answer, err error) {
	ctx, id := r.Context(), of.ID
	v := jobView{Job: of}
	if v.lookView, err = d.lookInto(r, domain.JobStream(id), v.AccountID); err != nil {
		return ui.Answer{}, err
	}
	if v.Checker, err = d.Reads.Overall.Name(ctx, overall.Checkers, v.CheckerID); err != nil {
		return ui.Answer{}, err
	}
	if v.Open {
		if v.Report, err = d.Reads.Jobs.Job(ctx, v.AccountID, id); err != nil {
			return ui.Answer{}, err
		}
		report, err := d.Reads.Jobs.Report(ctx, v.AccountID, id)
		if err != nil && !domain.IsKind(err, domain.KindNotFound) {
			return ui.Answer{}, err
		}
		v.Summary, v.Completed, v.Rulings = report.Summary, err == nil, job.Rulings()
		if v.Disputes, err = d.disputes(ctx, v.Report); err != nil {
			return ui.Answer{}, err
		}
	}
	return ui.Answer{Template: "console-job", Title: "Test " + id, View: v, Secret: v.Open}, nil
}

// decideDispute decides a dispute. A new test checks the URL first, as a submission does.
func (d Deps) decideDispute(r *ui.Request, of overall.Job) (ui.Answer, error) {
	ruling, stream := job.Ruling(r.PostFormValue("decision")), domain.JobStream(of.ID)
	act := command.OperatorAct{Act: oversight.DecideDispute, Subject: stream, AccountID: of.AccountID, Detail: string(ruling)}
	err := d.act(r, r.Cause(), act, func(ctx context.Context, cause command.Cause) (domain.Position, error) {
		cause.Sandbox = of.Sandbox
		if ruling == job.Retested {
			whole, err := d.Reads.Jobs.Job(ctx, of.AccountID, of.ID)
			if err == nil {
				err = d.StillAllowed(ctx, people.Account{ID: of.AccountID, Sandbox: of.Sandbox}, whole.Outline)
			}
			if err != nil {
				return domain.Position{}, err
			}
		}
		return d.Commands.RuleDispute(ctx, cause, of.ID, r.PathValue("dispute"), ruling)
	})
	return ui.Go("/console/jobs/" + of.ID), err
}
