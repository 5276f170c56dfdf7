package projects

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/history"
	"humanqa/projections/loops"
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
	Trend    []history.TrendTest // the oldest first
	Commits  map[string]string   // of the tests, by their ids
	Plot     *ui.Plot
	Failures []history.OpenFailure
	Queue    []history.PreparedBatch
	Loops    []loops.Session
	Matrix   matrixView
	Webhook  ui.State
	SLAs     []int
	SLA      int // minutes; 0: the usual
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
	if v.Loops, err = d.Reads.Loops.OfProject(ctx, v.AccountID, v.ID, loopsShown); err != nil {
		return v, err
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
	v.SLAs = []int{15, 30, 60}
	v.SLA, v.Host = wire.OrZero(v.DefaultSLAMinutes), ui.HostOf(wire.OrZero(v.DefaultURL))
	v.trend()
	return v, nil
}

// trend draws the share of items that passed, test by test.
func (v *projectView) trend() {
	v.Commits = map[string]string{}
	for _, t := range v.Matrix.Tests {
		v.Commits[t.JobID] = t.Commit
	}
	var columns []ui.Column
	for _, t := range slices.Backward(v.History.Trend) { // the newest comes first there
		v.Trend = append(v.Trend, t)
		column := ui.Column{Label: t.TestedAt.UTC().Format("2 Jan"), Number: "–"}
		column.Says = fmt.Sprintf("%s: %d of %d items passed",
			t.TestedAt.UTC().Format("2 Jan 2006, 15:04 UTC"), t.PassCount, t.PassCount+t.FailCount)
		if commit := v.Commits[t.JobID]; commit != "" {
			column.Says += ", commit " + commit
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
	texts, emptied := map[string]string{}, []string{}
	for field, name := range map[string]string{
		"name": "name", "description": "description", "url": "defaultUrl", "sla": "defaultSlaMinutes",
		"questions": "questionMinutes", "webhook": "webhookUrl",
	} {
		r.Named(name, field)
		switch text := strings.TrimSpace(r.PostFormValue(field)); {
		case field == "webhook" && text == p.WebhookURL:
		case text == "" && field != "name" && field != "webhook":
			emptied = append(emptied, name)
		default:
			texts[name] = text
		}
	}
	var problems wire.Problems
	in, target := input.ProjectUpdate(wire.Form(&problems, texts, emptied...), d.Limits)
	err := d.Limits.AdmittedForm(r.Context(), r.Account, &problems, target)
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.UpdateProject(r.Context(), r.Cause(), p.ID, in)
	}
	return r.Done(at, err, "/dashboard/projects/"+p.ID)
}
