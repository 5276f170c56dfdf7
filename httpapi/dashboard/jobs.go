package dashboard

import (
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/preferences"
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
)

type jobsView struct {
	Filter   jobFilter
	Tabs     []ui.Tab
	Projects []projects.Project
	Kinds    []job.Type
	Verdicts []choice
	Lines    []jobs.Found
	Pager    ui.Pager
	Filtered bool
	Narrowed bool // by more than its state
	Partial  bool // only the newest tests were searched
	Errors   []string
	Views    []preferences.View
	Query    string // of this view; if it is kept under a name, it leads back here
}

// jobTabs are the statuses that a list can be narrowed to.
var jobTabs = []choice{
	{"", "All"}, {string(job.StatusPending), "Waiting"}, {string(job.StatusClaimed), "Testing"},
	{string(job.StatusCompleted), "Completed"}, {string(job.StatusCancelled), "Cancelled"}, {string(job.StatusFailed), "Not tested"},
}

// jobFilter narrows a list of tests, as the list's URL says. Unknown values of the URL are
// left out.
type jobFilter struct {
	Words                          string
	Status, Project, Kind, Verdict string
	From, Until                    string // days of UTC, both included
}

type choice struct{ Value, Text string }

var verdictChoices = []choice{{job.OverallPass, "Passed"}, {job.OverallFail, "Failed"}, {job.OverallInconclusive, "Inconclusive"}}

// maxWords bounds the text of a search, in characters.
const maxWords = 200

// searched cleans the text of a search: it has valid UTF-8, no control characters, single
// spaces, and at most maxWords characters.
func searched(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return wire.Clip(strings.Join(strings.Fields(text), " "), maxWords)
}

func jobFilterOf(values url.Values) (f jobFilter) {
	f = jobFilter{
		Words: searched(values.Get("q")), Project: values.Get("project"),
	}
	if status := values.Get("status"); slices.ContainsFunc(jobTabs, func(c choice) bool { return c.Value == status }) {
		f.Status = status
	}
	if kind, known := job.ParseType(values.Get("kind")); known {
		f.Kind = string(kind)
	}
	if verdict := values.Get("verdict"); slices.ContainsFunc(verdictChoices, func(c choice) bool { return c.Value == verdict }) {
		f.Verdict = verdict
	}
	f.From, f.Until = values.Get("from"), values.Get("until")
	return f
}

// Query is the list's URL after the question mark.
func (f jobFilter) Query() string {
	query := url.Values{}
	for name, value := range map[string]string{
		"q": f.Words, "status": f.Status, "project": f.Project, "kind": f.Kind, "verdict": f.Verdict, "from": f.From, "until": f.Until,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query.Encode()
}

// href is the list that the filter shows.
func (f jobFilter) href() string {
	if query := f.Query(); query != "" {
		return "/dashboard/jobs?" + query
	}
	return "/dashboard/jobs"
}

// search is the filter as the read model takes it. A day that cannot be read is reported
// in wrong, and narrows nothing.
func (f jobFilter) search() (s jobs.Search, wrong []string) {
	s = jobs.Search{
		Words: f.Words, Status: job.Status(f.Status), ProjectID: f.Project, Type: job.Type(f.Kind), Verdict: f.Verdict, Limit: ui.PageSize,
	}
	day := func(name, value string) time.Time {
		if value == "" {
			return time.Time{}
		}
		at, err := time.Parse(time.DateOnly, value)
		if err != nil || at.Year() < 1 || at.Year() > 9998 {
			wrong = append(wrong, name+" must be a day such as 2026-03-29")
			return time.Time{}
		}
		return at
	}
	s.From, s.Until = day("From", f.From), day("Until", f.Until)
	if !s.Until.IsZero() {
		s.Until = s.Until.AddDate(0, 0, 1)
	}
	return s, wrong
}

func (d Deps) jobs(r *ui.Request) (ui.Answer, error) {
	page := ui.PageOf(r)
	v := jobsView{Filter: jobFilterOf(r.URL.Query()), Kinds: job.Types(), Verdicts: verdictChoices}
	var err error
	if v.Projects, _, err = d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsLooked}); err != nil {
		return ui.Answer{}, err
	}
	if !slices.ContainsFunc(v.Projects, func(p projects.Project) bool { return p.ID == v.Filter.Project }) {
		v.Filter.Project = ""
	}
	for _, t := range jobTabs {
		of := v.Filter
		of.Status = t.Value
		v.Tabs = append(v.Tabs, ui.Tab{Text: t.Text, Href: of.href(), Current: of.Status == v.Filter.Status})
	}
	v.Query = v.Filter.Query()
	v.Filtered, v.Narrowed = v.Filter != jobFilter{}, v.Filter != jobFilter{Status: v.Filter.Status}
	if v.Views, err = d.Preferences.Views(r.Context(), r.Account.ID, r.Person.ID); err != nil {
		return ui.Answer{}, err
	}
	search, wrong := v.Filter.search()
	v.Errors = wrong
	search.Offset = (page - 1) * ui.PageSize
	found, err := d.Reads.Jobs.Find(r.Context(), r.Account.ID, search)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Partial, v.Lines = found.Partial, found.Page
	if v.Filter == (jobFilter{Status: v.Filter.Status, Project: v.Filter.Project}) {
		total, err := d.Reads.Jobs.Total(r.Context(), r.Account.ID, search.Status, search.ProjectID)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Pager = ui.NewPager(r, page, len(found.Page), total)
	} else {
		v.Pager = ui.NewOpenPager(r, page, len(found.Page), found.More)
	}
	return ui.Show("jobs", "Tests", v, ui.Everything), nil
}

// formsFilter reads the filter of the list on which a form stands.
func formsFilter(r *ui.Request) (f jobFilter, s jobs.Search, err error) {
	values, err := url.ParseQuery(r.FormValue("query"))
	if err != nil {
		return f, s, domain.Invalid(domain.Detail{Path: "query", Message: "cannot be read"})
	}
	f = jobFilterOf(values)
	s, wrong := f.search()
	if len(wrong) > 0 {
		return f, s, domain.Invalid(domain.Detail{Path: "query", Message: "has a day that cannot be read"})
	}
	return f, s, nil
}

// keepView keeps a filter of the list under a name, for the person alone.
func (d Deps) keepView(r *ui.Request) (ui.Answer, error) {
	filter, _, err := formsFilter(r)
	if err != nil {
		return ui.Answer{}, err
	}
	query := filter.Query()
	err = d.Preferences.KeepView(r.Context(), r.Account.ID, r.Person.ID, r.PostFormValue("name"), query)
	return ui.Go("/dashboard/jobs?" + query), err
}

func (d Deps) dropView(r *ui.Request) (ui.Answer, error) {
	id, err := uuid.Parse(r.PostFormValue("view"))
	if err != nil {
		return ui.Answer{}, domain.NotFound("view")
	}
	err = d.Preferences.DropView(r.Context(), r.Account.ID, r.Person.ID, id)
	return ui.Go("/dashboard/jobs"), err
}
