package projects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/history"
	"humanqa/projections/projects"
)

const (
	// loopsShown bounds the loops of agents that a project's page shows.
	loopsShown = 5
	// testsCompared bounds the tests that stand side by side.
	testsCompared = 20
)

// matrixView shows the items that fail now, and on request those that pass again.
type matrixView struct {
	history.Matrix
	Days []matrixDay
	More int    // rows that pass again, and are left out
	All  string // the page with them
}

// matrixDay is the number of tests of one day (UTC), side by side.
type matrixDay struct {
	At    time.Time
	Tests int
}

func (m *matrixView) lay(path string, all bool) {
	open := 0
	for open < len(m.Rows) && m.Rows[open].Open { // they come first
		open++
	}
	if !all && open > 0 && open < len(m.Rows) {
		m.More, m.Rows, m.All = len(m.Rows)-open, m.Rows[:open], path+"?items=all#matrix"
	}
	for _, t := range m.Tests {
		day := t.TestedAt.UTC().Truncate(24 * time.Hour)
		if n := len(m.Days); n == 0 || !m.Days[n-1].At.Equal(day) {
			m.Days = append(m.Days, matrixDay{At: day})
		}
		m.Days[len(m.Days)-1].Tests++
	}
}

type projectView struct {
	projects.Project
	Host     string
	History  history.Project
	Percent  int
	Trend    []trendLine
	Plot     *ui.Plot
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
	Questions                       string // minutes; empty: the default
}

// slaText is the limit in minutes; empty for the default.
func (f projectForm) slaText() string {
	if f.SLA == 0 {
		return ""
	}
	return strconv.Itoa(f.SLA)
}

// trendLine is a test in the trend, the oldest first.
type trendLine struct {
	history.TrendTest
	Commit string
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
		v.Loops = append(v.Loops, loopLine{s, words.LoopState(s.Status)})
	}
	if v.Matrix.Matrix, err = d.Reads.History.Matrix(ctx, v.AccountID, v.ID, testsCompared); err != nil {
		return v, err
	}
	v.Matrix.lay("/dashboard/projects/"+v.ID, r.URL.Query().Get("items") == "all")
	health, err := d.Deliveries.Health(ctx, v.AccountID, v.ID)
	if err != nil {
		return v, err
	}
	v.Webhook = words.WebhookState(v.Project, health)
	v.Percent, v.Queue = int(v.History.PassRate+0.5), v.History.Prepared
	v.MayEdit, v.Owner = r.May(person.Developer), r.May(person.Owner)
	v.SLAs, v.Wrong = []int{15, 30, 60}, map[string]string{}
	v.Form = projectForm{
		Name: v.Name, Description: wire.OrZero(v.Description), URL: wire.OrZero(v.DefaultURL), Webhook: v.WebhookURL,
		SLA: wire.OrZero(v.DefaultSLAMinutes),
	}
	v.Host = ui.HostOf(v.Form.URL)
	if v.QuestionMinutes != nil {
		v.Form.Questions = strconv.Itoa(*v.QuestionMinutes)
	}
	v.trend()
	return v, nil
}

// trend draws the share of items that passed, test by test.
func (v *projectView) trend() {
	commits := map[string]string{}
	for _, t := range v.Matrix.Tests {
		commits[t.JobID] = t.Commit
	}
	var columns []ui.Column
	for _, t := range slices.Backward(v.History.Trend) { // the newest comes first there
		line := trendLine{t, commits[t.JobID]}
		v.Trend = append(v.Trend, line)
		column := ui.Column{Label: t.TestedAt.UTC().Format("2 Jan"), Number: "–"}
		column.Says = fmt.Sprintf("%s: %d of %d items passed",
			t.TestedAt.UTC().Format("2 Jan 2006, 15:04 UTC"), t.PassCount, t.PassCount+t.FailCount)
		if line.Commit != "" {
			column.Says += ", commit " + line.Commit
		}
		if items := t.PassCount + t.FailCount; items > 0 {
			share := 100 * float64(t.PassCount) / float64(items)
			column.Number = strconv.Itoa(int(share + 0.5))
			column.Parts = []ui.ColumnPart{{Kind: "pass", Of: share}, {Kind: "fail", Of: 100 - share}}
		}
		columns = append(columns, column)
	}
	v.Plot = ui.NewPlot(columns, 100, " %")
}

func (d Deps) project(r *ui.Request) (ui.Answer, error) {
	v, err := d.projectView(r)
	return ui.Show("project", v.Name, v, ui.Everything), err
}

// updateProject sends the whole form: an empty field is cleared.
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
	in, target := input.ProjectUpdate(wire.Form(&problems, texts, emptied...), d.Limits)
	err := d.Limits.AdmittedForm(r.Context(), r.Account, &problems, target)
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.UpdateProject(r.Context(), r.Cause(), p.ID, in)
	}
	wrong := ui.Wrongs(err)
	if wrong == nil {
		return r.Done(at, err, "/dashboard/projects/"+p.ID)
	}
	v, errView := d.projectView(r)
	if errView != nil {
		return ui.Answer{}, errView
	}
	v.Form, v.Wrong = form, wrong
	v.Errors = ui.Sentences(wrong, "name", "The name", "description", "The description", "defaultUrl", "The address",
		"defaultSlaMinutes", "The time limit", "questionMinutes", "The minutes of a question", "webhookUrl", "The webhook's address")
	return ui.Answer{Template: "project", Title: v.Name, View: v, Status: 422}, nil
}
