package dashboard

import (
	"slices"
	"strings"

	"humanqa/domain/identity"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
	"humanqa/projections/people"
)

// findView is the palette: the places that a person may go to. Without scripts it is a page.
type findView struct {
	Words string
	Hits  []hit
}

// hit is a place to go to.
type hit struct {
	Kind   string `json:"kind"` // Test, Project, Person, Page, Act
	Text   string `json:"text"`
	Detail string `json:"detail"`
	Href   string `json:"href"`
}

// place is a page or an act that the palette knows, by its name and words that people
// use for it.
type place struct {
	kind, text, words, href string
	needs                   person.Role
	sandbox                 bool
}

var places = []place{
	{"Act", "New test", "start submit create run check order buy", "/dashboard/jobs/new", person.Developer, false},
	{"Act", "New session", "start create checkers together lobby", "/dashboard/sessions/new", person.Developer, false},
	{"Act", "New batch", "bulk several submit", "/dashboard/batches/new", person.Developer, false},
	{"Act", "New project", "create add", "/dashboard/projects", person.Developer, false},
	{"Act", "Create an API key", "token secret new add", "/dashboard/keys", person.Owner, false},
	{"Act", "Invite a member", "people person user colleague add new team", "/dashboard/members", person.Owner, false},
	{"Act", "Change the warning for low credits", "limit balance alarm", "/dashboard/credits", person.Owner, false},
	{"Page", "Overview", "home start attention notices", "/dashboard", person.Viewer, false},
	{"Page", "Tests", "jobs list reports results history", "/dashboard/jobs", person.Viewer, false},
	{"Page", "Failed tests", "jobs failures broken bugs problems errors", "/dashboard/jobs?verdict=fail", person.Viewer, false},
	{"Page", "Waiting tests", "jobs open pending queue running stop cancel abort", "/dashboard/jobs?status=pending", person.Viewer, false},
	{"Page", "Batches", "bulk", "/dashboard/batches", person.Viewer, false},
	{"Page", "Projects", "apps sites matrix trend webhooks hooks deploy settings", "/dashboard/projects", person.Viewer, false},
	{"Page", "Sessions", "lobby room voice", "/dashboard/sessions", person.Viewer, false},
	{"Page", "Sandbox", "robots clock", "/dashboard/sandbox", person.Viewer, true},
	{"Page", "Credits", "balance ledger money buy pay payment price cost plan", "/dashboard/credits", person.Viewer, false},
	{"Page", "Statement", "credits entries print invoice bill billing receipt accounting", "/dashboard/credits/statement", person.Viewer, false},
	{"Page", "API keys", "token secret", "/dashboard/keys", person.Owner, false},
	{"Page", "Evidence", "pictures screenshots videos recordings retention hold keep delete", "/dashboard/evidence", person.Owner, false},
	{"Page", "Command line", "hqa device code login terminal", "/dashboard/device", person.Owner, false},
	{"Page", "Event readers", "feed cursor lag consumers", "/dashboard/readers", person.Developer, false},
	{"Page", "Members", "people users team roles rights permissions invitations remove", "/dashboard/members", person.Owner, false},
	{"Page", "Activity", "history audit log changes events facts did done people keys", "/dashboard/activity", person.Owner, false},
	{"Page", "Who saw secrets", "credentials passwords logins access shown checkers seen", "/dashboard/secrets", person.Owner, false},
	{"Page", "Access by staff", "looks operators audit", "/dashboard/looks", person.Owner, false},
	{"Page", "Notifications", "e-mail email mail letters alerts told unsubscribe", "/dashboard/notifications", person.Viewer, false},
	{"Page", "Your account", "profile settings passkey password sign-in login devices log out", "/account", person.Viewer, false},
	{"Page", "API documentation", "docs help reference openapi", "/docs", person.Viewer, false},
}

// The most places of each kind that the palette lists.
const (
	placesFound   = 6
	peopleFound   = 5
	projectsFound = 5
	testsFound    = 8
)

// find is the palette's answer: a page, or JSON for the page's script.
func (d Deps) find(r *ui.Request) (ui.Answer, error) {
	v := findView{Words: searched(r.FormValue("q")), Hits: []hit{}}
	typed := identity.Words(v.Words)
	for _, p := range places {
		allowed := r.Role.Includes(p.needs) && (!p.sandbox || r.Account.Sandbox)
		if len(v.Hits) < placesFound && allowed && holds(identity.Words(p.text+" "+p.words), typed) {
			v.Hits = append(v.Hits, hit{Kind: p.kind, Text: p.text, Href: p.href})
		}
	}
	if strings.TrimSpace(v.Words) != "" {
		if err := d.findMembers(r, &v, typed); err != nil {
			return ui.Answer{}, err
		}
		found, err := d.Reads.Projects.Named(r.Context(), r.Account.ID, v.Words, projectsFound)
		if err != nil {
			return ui.Answer{}, err
		}
		for _, p := range found {
			host := ui.HostOf(wire.OrZero(p.DefaultURL))
			v.Hits = append(v.Hits, hit{Kind: "Project", Text: p.Name, Detail: host, Href: "/dashboard/projects/" + p.ID})
		}
		tests, err := d.Reads.Jobs.Find(r.Context(), r.Account.ID, jobs.Search{Words: v.Words, Limit: testsFound})
		if err != nil {
			return ui.Answer{}, err
		}
		for _, j := range tests.Page {
			detail := ui.JobState(j.Summary).Word
			if verdicts := job.Tally(j.PassCount, j.FailCount, j.SkipCount); verdicts != "" {
				detail += ", " + verdicts
			}
			v.Hits = append(v.Hits, hit{
				Kind: "Test", Text: j.Title, Detail: detail + ", " + ui.HostOf(j.URL), Href: "/dashboard/jobs/" + j.ID,
			})
		}
	}
	if r.WantsJSON() {
		return ui.Answer{JSON: v.Hits}, nil
	}
	return ui.Show("find", "Search", v), nil
}

// findMembers finds members of the account, for those who may see what they did.
func (d Deps) findMembers(r *ui.Request, v *findView, typed []string) error {
	if !r.Role.Includes(person.Owner) || len(typed) == 0 {
		return nil
	}
	members, names, err := words.MembersOf(r.Context(), d.Credentials, d.Reads, r.Account.ID)
	members = slices.DeleteFunc(members, func(p people.Person) bool { return !holds(identity.Words(names[p.ID].Name), typed) })
	for _, p := range members[:min(len(members), peopleFound)] {
		v.Hits = append(v.Hits, hit{
			Kind: "Person", Text: names[p.ID].Name, Detail: string(p.Roles[0].Role), Href: "/dashboard/activity?by=person:" + p.ID,
		})
	}
	return err
}

// holds says that each wanted word is the beginning of one of the text's words.
func holds(text, wanted []string) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(text, func(t string) bool { return strings.HasPrefix(t, w) }) {
			return false
		}
	}
	return true
}
