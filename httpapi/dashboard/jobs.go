package dashboard

import (
	"net/url"
	"slices"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/ui"
	"humanqa/internal/preferences"
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
)

// jobLine is a test as lists show it.
type jobLine struct {
	ID, Title, Host string
	Type            string
	Urgent          bool
	State           ui.State
	CreatedAt       time.Time
}

func stateOf(j jobs.Summary) ui.State {
	switch j.Status {
	case job.StatusPending:
		return ui.NewState("Waiting", "", "clock")
	case job.StatusClaimed:
		return ui.NewState("Testing", "live", "")
	case job.StatusCancelled:
		return ui.NewState("Cancelled", "", "skip")
	case job.StatusFailed:
		return ui.NewState("Not tested", "warn", "alert")
	case job.StatusCompleted, job.StatusVoided: // a voided job is never shown
	}
	switch j.OverallStatus {
	case job.OverallPass:
		return ui.NewState("Passed", "pass", "check")
	case job.OverallFail:
		return ui.NewState("Failed", "fail", "cross")
	}
	return ui.NewState("Inconclusive", "warn", "skip")
}

func lineOf(j jobs.Summary) jobLine {
	return jobLine{
		ID: j.ID, Title: j.Title, Host: hostOf(j.URL), Type: j.Type.Title(), Urgent: j.Urgent,
		State: stateOf(j), CreatedAt: j.CreatedAt,
	}
}

type jobsView struct {
	Tabs     []tab
	Projects []projects.Project
	Project  string
	Status   string
	Lines    []jobLine
	Pager    pager
	Filtered bool
	MayTest  bool
	Views    []viewLine
	Query    string // this view's; kept under a name, it leads back here
}

// viewLine is a filter that the person keeps.
type viewLine struct {
	preferences.View
	Href    string
	Current bool
}

type tab struct {
	Text, Href string
	Current    bool
}

// jobTabs are the statuses that a list can be narrowed to.
var jobTabs = []struct {
	status job.Status
	text   string
}{
	{"", "All"}, {job.StatusPending, "Waiting"}, {job.StatusClaimed, "Testing"}, {job.StatusCompleted, "Completed"},
	{job.StatusCancelled, "Cancelled"}, {job.StatusFailed, "Not tested"},
}

func (d Deps) jobs(r *ui.Request) (ui.Answer, error) {
	page := pageOf(r)
	v := jobsView{Status: r.FormValue("status"), Project: r.FormValue("project"), MayTest: may(r, person.Developer)}
	var err error
	if v.Projects, _, err = d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsLooked}); err != nil {
		return ui.Answer{}, err
	}
	if !slices.ContainsFunc(v.Projects, func(p projects.Project) bool { return p.ID == v.Project }) {
		v.Project = ""
	}
	known := false
	for _, t := range jobTabs {
		current := v.Status == string(t.status)
		known = known || current
		href := "/dashboard/jobs"
		if query := jobsQuery(string(t.status), v.Project); query != "" {
			href += "?" + query
		}
		v.Tabs = append(v.Tabs, tab{Text: t.text, Href: href, Current: current})
	}
	if !known {
		v.Status = ""
		v.Tabs[0].Current = true
	}
	v.Filtered = v.Status != "" || v.Project != ""
	v.Query = jobsQuery(v.Status, v.Project)
	views, err := d.Preferences.Views(r.Context(), r.Account.ID, r.Person.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, view := range views {
		v.Views = append(v.Views, viewLine{view, "/dashboard/jobs?" + view.Query, view.Query == v.Query})
	}
	rows, total, err := d.Reads.Jobs.List(r.Context(), r.Account.ID, jobs.Filter{
		Status: job.Status(v.Status), ProjectID: v.Project, Limit: pageSize, Offset: (page - 1) * pageSize,
	})
	if err != nil {
		return ui.Answer{}, err
	}
	for _, j := range rows {
		v.Lines = append(v.Lines, lineOf(j))
	}
	v.Pager = newPager(r, page, len(rows), total)
	return ui.Show("jobs", "Tests", v, ui.Everything)
}

// jobsQuery is the list's URL after the question mark.
func jobsQuery(status, project string) string {
	query := url.Values{}
	if status != "" {
		query.Set("status", status)
	}
	if project != "" {
		query.Set("project", project)
	}
	return query.Encode()
}

// keepView keeps a filter of the list under a name, for the person alone.
func (d Deps) keepView(r *ui.Request) (ui.Answer, error) {
	kept, err := url.ParseQuery(r.PostFormValue("query"))
	if err != nil {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "query", Message: "cannot be read"})
	}
	query := jobsQuery(kept.Get("status"), kept.Get("project"))
	if err := d.Preferences.KeepView(r.Context(), r.Account.ID, r.Person.ID, r.PostFormValue("name"), query); err != nil {
		return ui.Answer{}, err
	}
	return ui.Go("/dashboard/jobs?" + query)
}

func (d Deps) dropView(r *ui.Request) (ui.Answer, error) {
	id, err := uuid.Parse(r.PostFormValue("view"))
	if err != nil {
		return ui.Answer{}, domain.NotFound("view")
	}
	if err := d.Preferences.DropView(r.Context(), r.Account.ID, r.Person.ID, id); err != nil {
		return ui.Answer{}, err
	}
	return ui.Go("/dashboard/jobs")
}
