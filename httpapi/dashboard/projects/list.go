package projects

import (
	"fmt"
	"strconv"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/analytics"
	"humanqa/projections/history"
	"humanqa/projections/projects"
)

type projectsView struct {
	Projects  []projectLine
	Weeks     []weekLine
	WeeksPlot *ui.Plot
	Pager     ui.Pager
	MayAdd    bool
}

type projectLine struct {
	projects.Project
	Host    string
	Percent int
	Spark   *ui.Spark
	Commit  string // of the latest test that has one
}

// weeksShown is the number of weeks for which the pass rate is drawn.
const weeksShown = 12

// weekLine is a week of the pass rate, the oldest first.
type weekLine struct {
	analytics.PassRate
	From    time.Time // its Monday, UTC
	Percent int
}

// weeksOf gives the account's latest weeks up to the present one; nil if none had a test.
func weeksOf(rates []analytics.PassRate, now time.Time) ([]weekLine, *ui.Plot) {
	byWeek := map[time.Time]analytics.PassRate{}
	for _, rate := range rates {
		if rate.Week != nil {
			byWeek[rate.Week.UTC()] = rate
		}
	}
	now = now.UTC()
	monday := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, -(int(now.Weekday())+6)%7)
	var weeks []weekLine
	var columns []ui.Column
	tested := false
	for n := range weeksShown {
		week := weekLine{From: monday.AddDate(0, 0, 7*(n-weeksShown+1))}
		week.PassRate = byWeek[week.From]
		column := ui.Column{Label: week.From.Format("2 Jan"), Number: "–"}
		column.Says = "Week from " + week.From.Format("2 Jan 2006") + ": no test"
		if week.Completed > 0 {
			tested = true
			share := 100 * float64(week.Passed) / float64(week.Completed)
			week.Percent = int(share + 0.5)
			column.Number = strconv.Itoa(week.Percent)
			column.Says = fmt.Sprintf("Week from %s: %d of %d tests passed", week.From.Format("2 Jan 2006"), week.Passed, week.Completed)
			column.Parts = []ui.ColumnPart{{Kind: "pass", Of: share}, {Kind: "fail", Of: 100 - share}}
		}
		weeks, columns = append(weeks, week), append(columns, column)
	}
	if !tested {
		return nil, nil
	}
	return weeks, ui.NewPlot(columns, 100, " %")
}

func (d Deps) projectsView(r *ui.Request) (v projectsView, err error) {
	page := ui.PageOf(r)
	all := projects.Filter{Limit: ui.PageSize, Offset: (page - 1) * ui.PageSize}
	rows, total, err := d.Reads.Projects.List(r.Context(), r.Account.ID, all)
	if err != nil {
		return v, err
	}
	ids := wire.List(rows, func(p projects.Project) string { return p.ID })
	latest, err := d.Reads.History.Latest(r.Context(), r.Account.ID, ids)
	if err != nil {
		return v, err
	}
	for _, p := range rows {
		line := projectLine{Project: p, Host: ui.HostOf(wire.OrZero(p.DefaultURL)), Percent: int(p.PassRate*100 + 0.5)}
		line.Spark, line.Commit = sparkOf(latest[p.ID])
		v.Projects = append(v.Projects, line)
	}
	now, err := d.Commands.AccountTime(r.Context(), command.Cause{AccountID: r.Account.ID, Sandbox: r.Account.Sandbox})
	if err != nil {
		return v, err
	}
	rates, err := d.Reads.Analytics.PassRates(r.Context(), r.Account.ID, "", []string{"week"}, nil)
	if err != nil {
		return v, err
	}
	v.Weeks, v.WeeksPlot = weeksOf(rates, now)
	v.Pager, v.MayAdd = ui.NewPager(r, page, len(rows), total), r.May(person.Developer)
	return v, nil
}

// sparkOf draws the share of items that passed in the latest tests, the oldest first.
func sparkOf(tests []history.LatestTest) (spark *ui.Spark, commit string) {
	var values []float64
	passed := 0
	for _, t := range tests {
		if t.Commit != "" {
			commit = t.Commit
		}
		if t.OverallStatus == job.OverallPass {
			passed++
		}
		if items := t.PassCount + t.FailCount; items > 0 {
			values = append(values, float64(t.PassCount)/float64(items))
		}
	}
	says := fmt.Sprintf("Items that passed, test by test: %d of the last %s passed.", passed, ui.Count(len(tests), "test"))
	return ui.NewSpark(values, says), commit
}

func (d Deps) projects(r *ui.Request) (ui.Answer, error) {
	v, err := d.projectsView(r)
	return ui.Show("projects", "Projects", v, ui.Everything), err
}

func (d Deps) createProject(r *ui.Request) (ui.Answer, error) {
	r.Addresses("url")
	form := ui.Form(r, map[string]string{"name": "name", "url": "defaultUrl"})
	in, target := input.NewProject(form, d.Limits)
	err := d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems, target)
	var out command.CreatedProject
	if err == nil {
		out, err = d.Commands.CreateProject(r.Context(), r.Cause(), in)
	}
	return r.Done(out.Position, err, "/dashboard/projects/"+out.ProjectID)
}
