package dashboard

import (
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/person"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/analytics"
	"humanqa/projections/history"
	"humanqa/projections/projects"
)

type projectsView struct {
	Projects []projectLine
	Weeks    []weekBar
	Pager    pager
	MayAdd   bool
	Name     string
	URL      string
	Wrong    map[string]string
	Errors   []string
}

type projectLine struct {
	projects.Project
	Host    string
	Percent int
}

// weeksShown is how far back the pass rate goes.
const weeksShown = 12

// weekBar is a week in the chart of the pass rate, the oldest first. Heights are
// of 100; a week without a test has none.
type weekBar struct {
	analytics.PassRate
	From         time.Time // its Monday, UTC
	Percent      int
	X            string
	PassY, PassH string
	RestH        string
}

// weeksOf lays the account's weeks out up to the present one.
func weeksOf(rates []analytics.PassRate, now time.Time) []weekBar {
	byWeek := map[time.Time]analytics.PassRate{}
	for _, rate := range rates {
		if rate.Week != nil {
			byWeek[rate.Week.UTC()] = rate
		}
	}
	now = now.UTC()
	monday := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC).AddDate(0, 0, -(int(now.Weekday())+6)%7)
	var bars []weekBar
	tested := false
	for n := range weeksShown {
		bar := weekBar{From: monday.AddDate(0, 0, 7*(n-weeksShown+1))}
		bar.PassRate = byWeek[bar.From]
		text := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
		bar.X, bar.PassY, bar.PassH, bar.RestH = text(float64(n)*400/weeksShown), "100.0", "0.0", "0.0"
		if bar.Completed > 0 {
			tested = true
			high := 100 * float64(bar.Passed) / float64(bar.Completed)
			bar.Percent = int(high + 0.5)
			bar.PassY, bar.PassH, bar.RestH = text(100-high), text(high), text(100-high)
		}
		bars = append(bars, bar)
	}
	if !tested {
		return nil
	}
	return bars
}

func (d Deps) projectsView(r *ui.Request) (v projectsView, err error) {
	page := pageOf(r)
	rows, total, err := d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: pageSize, Offset: (page - 1) * pageSize})
	if err != nil {
		return v, err
	}
	for _, p := range rows {
		line := projectLine{Project: p, Percent: int(p.PassRate*100 + 0.5)}
		if p.DefaultURL != nil {
			line.Host = hostOf(*p.DefaultURL)
		}
		v.Projects = append(v.Projects, line)
	}
	now, err := d.now(r)
	if err != nil {
		return v, err
	}
	rates, err := d.Reads.Analytics.PassRates(r.Context(), r.Account.ID, "", []string{"week"}, nil)
	if err != nil {
		return v, err
	}
	v.Weeks = weeksOf(rates, now)
	v.Pager, v.MayAdd, v.Wrong = newPager(r, page, len(rows), total), may(r, person.Developer), map[string]string{}
	return v, nil
}

func (d Deps) projects(r *ui.Request) (ui.Answer, error) {
	v, err := d.projectsView(r)
	if err != nil {
		return ui.Answer{}, err
	}
	return ui.Show("projects", "Projects", v, ui.Everything)
}

func (d Deps) createProject(r *ui.Request) (ui.Answer, error) {
	if err := open(r); err != nil {
		return ui.Answer{}, err
	}
	r.Addresses("url")
	form := ui.Form(r, map[string]string{"name": "name", "url": "defaultUrl"})
	in := input.NewProject(form, d.Limits)
	err := d.Limits.AdmittedForm(r.Context(), r.Account, form.Problems)
	var out command.CreatedProject
	if err == nil {
		out, err = d.Commands.CreateProject(r.Context(), r.Cause(), in)
	}
	if err == nil {
		r.Visible(out.Position)
		return ui.Go("/dashboard/projects/" + out.ProjectID)
	}
	wrong := wrongs(err)
	if wrong == nil {
		return ui.Answer{}, err
	}
	v, errView := d.projectsView(r)
	if errView != nil {
		return ui.Answer{}, errView
	}
	v.Name, v.URL, v.Wrong = r.PostFormValue("name"), r.PostFormValue("url"), wrong
	v.Errors = sentences(wrong, "name", "The name", "defaultUrl", "The address")
	return ui.Answer{Template: "projects", Title: "Projects", View: v, Status: 422}, nil
}

const (
	// loopsShown is how many loops of agents a project's page shows.
	loopsShown = 5
	// testsCompared is how many tests stand side by side.
	testsCompared = 20
)

// matrixView leaves out of the matrix what passes again, beyond rowsShown.
type matrixView struct {
	history.Matrix
	More int
}

const rowsShown = 12

func (m *matrixView) shorten() {
	kept := 0
	for kept < len(m.Rows) && (kept < rowsShown || m.Rows[kept].Open) { // open ones come first
		kept++
	}
	m.More, m.Rows = len(m.Rows)-kept, m.Rows[:kept]
}

type projectView struct {
	projects.Project
	Host     string
	History  history.Project
	Percent  int
	Trend    []trendBar
	Failures []history.OpenFailure
	Queue    []history.PreparedBatch
	Loops    []loopLine
	Matrix   matrixView
	Webhook  ui.State
	MayEdit  bool
	Owner    bool
	SLAs     []int
	Form     projectForm
	Wrong    map[string]string
	Errors   []string
}

type projectForm struct {
	Name, Description, URL, Webhook string
	SLA                             int
	Questions                       string // minutes; empty: as long as usual
}

// slaText is the limit in minutes; empty for the default.
func (f projectForm) slaText() string {
	if f.SLA == 0 {
		return ""
	}
	return strconv.Itoa(f.SLA)
}

// trendBar is a test in the trend, the oldest first. Heights are of 100.
type trendBar struct {
	history.TrendTest
	X, Y, High string
	Kind       string
}

func (d Deps) projectView(r *ui.Request) (v projectView, err error) {
	if v.Project, err = ui.Find(r, "project", d.Reads.Projects.Get); err != nil {
		return v, err
	}
	ctx := r.Context()
	if v.History, err = d.Reads.History.Project(ctx, v.AccountID, v.ID); err != nil {
		return v, err
	}
	if v.Failures, err = d.Reads.History.OpenFailures(ctx, v.AccountID, v.ID, 20); err != nil {
		return v, err
	}
	runs, err := d.Reads.Loops.OfProject(ctx, v.AccountID, v.ID, loopsShown)
	if err != nil {
		return v, err
	}
	for _, s := range runs {
		v.Loops = append(v.Loops, loopLine{s, loopState(s.Status)})
	}
	if v.Matrix.Matrix, err = d.Reads.History.Matrix(ctx, v.AccountID, v.ID, testsCompared); err != nil {
		return v, err
	}
	v.Matrix.shorten()
	health, err := d.Deliveries.Health(ctx, v.AccountID, v.ID)
	if err != nil {
		return v, err
	}
	v.Webhook = healthState(v.Project, health)
	v.Percent, v.Queue = int(v.History.PassRate+0.5), v.History.Prepared
	v.MayEdit, v.Owner = may(r, person.Developer), may(r, person.Owner)
	v.SLAs, v.Wrong = []int{15, 30, 60}, map[string]string{}
	v.Form = projectForm{Name: v.Name, Webhook: v.WebhookURL}
	if v.QuestionMinutes != nil {
		v.Form.Questions = strconv.Itoa(*v.QuestionMinutes)
	}
	if v.Description != nil {
		v.Form.Description = *v.Description
	}
	if v.DefaultURL != nil {
		v.Form.URL, v.Host = *v.DefaultURL, hostOf(*v.DefaultURL)
	}
	if v.DefaultSLAMinutes != nil {
		v.Form.SLA = *v.DefaultSLAMinutes
	}
	v.trend()
	return v, nil
}

func (v *projectView) trend() {
	n := len(v.History.Trend)
	for i := range n {
		t := v.History.Trend[n-1-i] // the newest comes first there
		bar := trendBar{TrendTest: t, Kind: "none"}
		high := 8.0
		if items := t.PassCount + t.FailCount; items > 0 {
			high = max(8, 100*float64(t.PassCount)/float64(items))
		}
		if t.OverallStatus == "pass" || t.OverallStatus == "fail" {
			bar.Kind = t.OverallStatus
		}
		text := func(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }
		bar.X, bar.Y, bar.High = text(float64(i)*40), text(100-high), text(high)
		v.Trend = append(v.Trend, bar)
	}
}

func (d Deps) project(r *ui.Request) (ui.Answer, error) {
	v, err := d.projectView(r)
	if err != nil {
		return ui.Answer{}, err
	}
	return ui.Show("project", v.Name, v, ui.Everything)
}

// updateProject sends the whole form: what is empty is cleared.
func (d Deps) updateProject(r *ui.Request, p projects.Project) (ui.Answer, error) {
	r.Addresses("url", "webhook")
	form := projectForm{
		Name: strings.TrimSpace(r.PostFormValue("name")), Description: strings.TrimSpace(r.PostFormValue("description")),
		URL: strings.TrimSpace(r.PostFormValue("url")), Webhook: strings.TrimSpace(r.PostFormValue("webhook")),
	}
	form.Questions = strings.TrimSpace(r.PostFormValue("questions"))
	form.SLA, _ = strconv.Atoi(r.PostFormValue("sla")) // anything else is the default
	texts, emptied := map[string]string{"name": form.Name}, []string{}
	for name, text := range map[string]string{"description": form.Description, "defaultUrl": form.URL,
		"defaultSlaMinutes": form.slaText(), "questionMinutes": form.Questions} {
		if text == "" {
			emptied = append(emptied, name)
		} else {
			texts[name] = text
		}
	}
	if form.Webhook != p.WebhookURL {
		texts["webhookUrl"] = form.Webhook
	}
	var problems wire.Problems
	in := input.ProjectUpdate(wire.Form(&problems, texts, emptied...), d.Limits)
	err := d.Limits.AdmittedForm(r.Context(), r.Account, &problems)
	if err == nil {
		var at domain.Position
		if _, at, err = d.Commands.UpdateProject(r.Context(), r.Cause(), p.ID, in); err == nil {
			r.Visible(at)
			return ui.Go("/dashboard/projects/" + p.ID)
		}
	}
	wrong := wrongs(err)
	if wrong == nil {
		return ui.Answer{}, err
	}
	v, errView := d.projectView(r)
	if errView != nil {
		return ui.Answer{}, errView
	}
	v.Form, v.Wrong = form, wrong
	v.Errors = sentences(wrong, "name", "The name", "description", "The description", "defaultUrl", "The address",
		"defaultSlaMinutes", "The time limit", "questionMinutes", "The minutes of a question", "webhookUrl", "The webhook's address")
	return ui.Answer{Template: "project", Title: v.Name, View: v, Status: 422}, nil
}
