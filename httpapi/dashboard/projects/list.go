package projects

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain/command"
	"humanqa/domain/identity"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/analytics"
	"humanqa/projections/history"
	"humanqa/projections/projects"
)

const (
	// linesShown bounds the projects of a page, and projectsLooked those that are sorted.
	linesShown, projectsLooked = 20, 1000
	// quietAfter is the age of the latest test of a project that is quiet.
	quietAfter = 14 * 24 * time.Hour
)

type projectsView struct {
	Lines     []projectLine
	Called    func(actor string) string // names the author of a latest test
	Chips     []chip
	Words     string
	Show      string // the chip that is chosen
	All       int    // the account's projects
	Weeks     []weekLine
	WeeksPlot *ui.Plot
	Pager     ui.Pager
}

// projectLine is a project beside the others.
type projectLine struct {
	projects.Project
	history.Standing
	Host    string
	Webhook ui.State
	Quiet   bool
	// Percent is the share of tests that passed in the latest week with a test, and Change the
	// difference to the one before, in percent.
	Percent, Change int
	Weeks           int // with a test
	Spark           *ui.Spark
}

// chip narrows the list to projects of a kind.
type chip struct {
	ui.Tab
	Count int
}

// chips are the kinds of projects, by their names in the address.
var chips = []struct {
	show, text string
	has        func(projectLine) bool
}{
	{"", "All", func(projectLine) bool { return true }},
	{"failing", "Failing", func(l projectLine) bool { return l.Failures > 0 }},
	{"worse", "Worse this week", func(l projectLine) bool { return l.Fresh > 0 }},
	{"quiet", "Quiet", func(l projectLine) bool { return l.Quiet }},
	{"webhook", "Webhook down", func(l projectLine) bool { return l.Webhook.Word != "" && l.Webhook.Kind != "pass" }},
	{showArchived, "Archived", func(projectLine) bool { return true }},
}

// showArchived is the one chip with the archived projects, and without all others.
const showArchived = "archived"

// weeksShown is the number of weeks for which the pass rate is drawn.
const weeksShown = 12

// weekLine is a week of the pass rate, the oldest first.
type weekLine struct {
	analytics.PassRate
	From    time.Time // its Monday, UTC
	Percent int
}

// firstMonday begins the weeks that are shown (UTC).
func firstMonday(now time.Time) time.Time {
	return history.Monday(now).AddDate(0, 0, -7*(weeksShown-1))
}

// weeksOf gives the account's latest weeks up to the present one; nil if none had a test.
func weeksOf(rates []analytics.PassRate, now time.Time) ([]weekLine, *ui.Plot) {
	byWeek := map[time.Time]analytics.PassRate{}
	for _, rate := range rates {
		if rate.Week != nil {
			byWeek[rate.Week.UTC()] = rate
		}
	}
	first := firstMonday(now)
	var weeks []weekLine
	var columns []ui.Column
	tested := false
	for n := range weeksShown {
		week := weekLine{From: first.AddDate(0, 0, 7*n)}
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
	v = projectsView{Words: strings.Join(strings.Fields(r.FormValue("q")), " ")}
	now, err := d.Commands.AccountTime(r.Context(), command.Cause{AccountID: r.Account.ID, Sandbox: r.Account.Sandbox})
	if err != nil {
		return v, err
	}
	lines, err := d.worstFirst(r, now)
	if err != nil {
		return v, err
	}
	v.All = len(lines)
	searched := identity.Fold(v.Words)
	lines = slices.DeleteFunc(lines, func(l projectLine) bool {
		return !strings.Contains(identity.Fold(l.Name+" "+l.Host), searched)
	})
	shown := lines
	for _, c := range chips {
		of := slices.DeleteFunc(slices.Clone(lines), func(l projectLine) bool {
			return !c.has(l) || (c.show == showArchived) != (l.ArchivedAt != nil)
		})
		query := url.Values{"show": {c.show}, "q": {v.Words}}
		maps.DeleteFunc(query, func(_ string, values []string) bool { return values[0] == "" })
		href := strings.TrimSuffix("/dashboard/projects?"+query.Encode(), "?")
		tab := ui.Tab{Text: c.text, Href: href, Current: r.FormValue("show") == c.show}
		if tab.Current {
			v.Show, shown = c.show, of
		}
		v.Chips = append(v.Chips, chip{tab, len(of)})
	}
	page := ui.PageOf(r)
	v.Lines = shown[min(len(shown), (page-1)*linesShown):min(len(shown), page*linesShown)]
	v.Pager = ui.NewPagerOf(r, linesShown, page, len(v.Lines), len(shown))
	authors := wire.List(v.Lines, func(l projectLine) string { return l.Author })
	if v.Called, err = words.AuthorsOf(r.Context(), d.Credentials, d.Reads, r.Account.ID, authors...); err != nil {
		return v, err
	}
	return v, d.drawWeeks(r, &v, now)
}

// worstFirst lists the account's projects, the one with most critical failures first.
func (d Deps) worstFirst(r *ui.Request, now time.Time) (lines []projectLine, err error) {
	ctx, account := r.Context(), r.Account.ID
	rows, _, err := d.Reads.Projects.List(ctx, account, projects.Filter{Limit: projectsLooked})
	if err != nil {
		return nil, err
	}
	byID := map[string]projects.Project{}
	for _, p := range rows {
		byID[p.ID] = p
	}
	ids := wire.List(rows, func(p projects.Project) string { return p.ID })
	standings, err := d.Reads.History.Standings(ctx, account, ids, now.Add(-history.Lately), history.FailuresCounted)
	if err != nil {
		return nil, err
	}
	health, err := d.Deliveries.Health(ctx, account, ids...)
	if err != nil {
		return nil, err
	}
	for _, s := range standings {
		p := byID[s.ProjectID]
		lines = append(lines, projectLine{
			Project: p, Standing: s, Host: ui.HostOf(wire.OrZero(p.DefaultURL)), Webhook: words.WebhookState(p, health),
			Quiet: now.Sub(cmp.Or(wire.OrZero(s.TestedAt), p.CreatedAt)) > quietAfter,
		})
	}
	return lines, nil
}

// drawWeeks draws the weeks of each project that is shown and, if the page is asked for them,
// those of the account: they are all its tests.
func (d Deps) drawWeeks(r *ui.Request, v *projectsView, now time.Time) error {
	ids := wire.List(v.Lines, func(l projectLine) string { return l.ID })
	weeks, err := d.Reads.History.Weeks(r.Context(), r.Account.ID, ids, firstMonday(now))
	if err != nil {
		return err
	}
	for i := range v.Lines {
		l := &v.Lines[i]
		var values []float64
		for _, week := range weeks {
			if week.ProjectID == l.ID {
				share := float64(week.Passed) / float64(week.Tests)
				values = append(values, share)
				percent := int(100*share + 0.5)
				l.Change, l.Percent = percent-l.Percent, percent
			}
		}
		l.Weeks = len(values)
		l.Spark = ui.NewSpark(values, fmt.Sprintf("Tests that passed, week by week: %d percent in the latest of %s.", l.Percent, ui.Count(l.Weeks, "week")))
	}
	if r.FormValue("weeks") == "" {
		return nil
	}
	rates, err := d.Reads.Analytics.PassRates(r.Context(), r.Account.ID, "", []string{"week"}, nil)
	v.Weeks, v.WeeksPlot = weeksOf(rates, now)
	return err
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
