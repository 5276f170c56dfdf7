package dashboard

import (
	"cmp"
	"strings"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/projections/activity"
	"humanqa/projections/projects"
)

// activityView lists facts with their authors. A page of its own lists only the secrets that
// checkers saw.
type activityView struct {
	Here     string // the path of the page
	Secrets  bool
	Lines    []factLine
	Pager    ui.Pager
	Projects []projects.Project // offered as a filter
	Project  string             // the chosen one's id
	By       string             // the chosen author; empty: all
	ByName   string
}

type factLine struct {
	activity.Titled
	Who         string
	About, Href string // the subject
}

// projectsOffered bounds the projects that the filter offers.
const projectsOffered = 100

// activity lists the acts of people, keys and hooks.
func (d Deps) activity(r *ui.Request) (ui.Answer, error) { return d.facts(r, "Activity", "") }

// secrets lists the secrets that checkers saw (decisions, "Secrets seen").
func (d Deps) secrets(r *ui.Request) (ui.Answer, error) {
	return d.facts(r, "Who saw secrets", (*job.SecretShown)(nil).EventType())
}

func (d Deps) facts(r *ui.Request, title, kind string) (ui.Answer, error) {
	ctx, id, page := r.Context(), r.Account.ID, ui.PageOf(r)
	v := activityView{Here: r.URL.Path, Secrets: kind != "", Project: r.FormValue("project"), By: r.FormValue("by")}
	facts, err := d.Reads.Activity.List(ctx, id, activity.Filter{
		ProjectID: v.Project, Author: v.By, Kind: kind, Limit: ui.PageSize + 1, Offset: (page - 1) * ui.PageSize,
	})
	if err != nil {
		return ui.Answer{}, err
	}
	shown := facts[:min(len(facts), ui.PageSize)]
	v.Pager = ui.NewOpenPager(r, page, len(shown), len(facts) > len(shown))
	if v.Projects, _, err = d.Reads.Projects.List(ctx, id, projects.Filter{Limit: projectsOffered}); err != nil {
		return ui.Answer{}, err
	}
	actors := []string{v.By}
	for _, f := range shown {
		actors = append(actors, f.Author, subjectOf(f))
	}
	name, err := words.AuthorsOf(ctx, d.Credentials, d.Reads, id, actors...)
	if err != nil {
		return ui.Answer{}, err
	}
	v.ByName = name(v.By)
	for _, f := range shown {
		what, href := placeOf(f.Stream)
		line := factLine{Titled: f, Who: name(f.Author), About: cmp.Or(f.Title, what), Href: href}
		if subject := subjectOf(f); subject != "" {
			line.About = name(subject)
		}
		v.Lines = append(v.Lines, line)
	}
	return ui.Show("activity", title, v, ui.Everything), nil
}

// subjectOf is the key or the person that a fact is about, as an actor; empty: neither.
func subjectOf(f activity.Titled) string {
	if id, is := strings.CutPrefix(f.Stream, domain.PersonStreams); is {
		return "person:" + id
	}
	if strings.HasPrefix(f.Detail, "key:") {
		return f.Detail
	}
	return ""
}
