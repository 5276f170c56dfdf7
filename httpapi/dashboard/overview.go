package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/readers"
	"humanqa/httpapi/ui"
	"humanqa/projections/credits"
	"humanqa/projections/jobs"
	"humanqa/projections/projects"
)

const (
	// soonExpired is the time before a lot expires in which the overview warns.
	soonExpired = 7 * 24 * time.Hour

	// What is shown, at most: a list that is longer says so.
	liveShown, recentShown, failingShown, askingShown = 6, 8, 5, 100
	// projectsLooked is more than any account has.
	projectsLooked = 1000
	// failuresCounted bounds the open failures of a project that are counted.
	failuresCounted = 100
)

type overviewView struct {
	New       bool // nothing was ever tested
	MayTest   bool
	Live      []liveJob
	LiveCount int
	Recent    []words.JobLine
	Completed int
	Failed    int // completed tests with a failure, among the recent ones
	Balance   credits.Balance
	Price     domain.Credits // of a test by a person
	Needs     []need
	// Cut says which of the needs are more than are shown.
	Cut     string
	Notices []words.Notice
	SeenTo  string // the cursor of the newest notice
}

// need is something that waits for a person.
type need struct {
	Icon, Kind, Text, Detail, Href, Action string
	Word                                   string // empty: by Kind
}

// gravity is lower, the graver the need: a failure comes before a warning.
func (n need) gravity() int {
	if n.Kind == "fail" {
		return 0
	}
	return 1
}

type liveJob struct {
	words.JobLine
	Due            string // when it is due; a question to the client stops its clock
	Checked, Total int
}

func (d Deps) overview(r *ui.Request) (ui.Answer, error) {
	v := overviewView{MayTest: r.May(person.Developer), Price: job.GeneralQA.Price(false)}
	ctx, account := r.Context(), r.Account.ID
	live, total, err := d.Reads.Jobs.Live(ctx, account, liveShown)
	if err != nil {
		return ui.Answer{}, err
	}
	v.LiveCount = total
	now, err := d.now(r)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, j := range live {
		pass, fail, skip := job.Counts(j.Items)
		due := ui.Until(now, j.DueAt)
		if _, open := j.OpenQuestion(); open {
			due = "when you answer"
		}
		v.Live = append(v.Live, liveJob{JobLine: words.LineOf(j.Summary()), Due: due, Checked: pass + fail + skip, Total: len(j.Items)})
	}
	done, err := d.Reads.Jobs.Find(ctx, account, jobs.Search{Status: job.StatusCompleted, Limit: recentShown})
	if err != nil {
		return ui.Answer{}, err
	}
	if v.Completed, err = d.Reads.Jobs.Total(ctx, account, job.StatusCompleted, ""); err != nil {
		return ui.Answer{}, err
	}
	for _, j := range done.Page {
		v.Recent = append(v.Recent, foundLine(j))
		if j.OverallStatus == job.OverallFail {
			v.Failed++
		}
	}
	v.New = v.LiveCount == 0 && v.Completed == 0
	if v.Balance, err = d.Reads.Credits.Balance(ctx, account, now); err != nil {
		return ui.Answer{}, err
	}
	asked, questions, err := d.Reads.Jobs.Asking(ctx, account, askingShown)
	if err != nil {
		return ui.Answer{}, err
	}
	needs, failing, err := d.needs(r, v.Balance, now)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Needs = append(asking(asked, now), needs...)
	var cut []string
	if questions > askingShown {
		cut = append(cut, fmt.Sprintf("%d of %d questions", askingShown, questions))
	}
	if failing > failingShown {
		cut = append(cut, fmt.Sprintf("%d of %d failing projects", failingShown, failing))
	}
	v.Cut = strings.Join(cut, ", ")
	v.Notices, v.SeenTo, err = d.notices(r)
	return ui.Show("overview", "Overview", v, ui.Everything), err
}

// asking lists the checkers' questions that wait for an answer. Their tests are paused.
func asking(asked []jobs.Job, now time.Time) (list []need) {
	for _, j := range asked {
		if q, open := j.OpenQuestion(); open {
			list = append(list, need{
				Icon: "person", Kind: "warn", Word: "Question", Text: q.Text,
				Detail: fmt.Sprintf("%s is paused. The question ends %s.", j.Title, ui.Until(now, q.Until)),
				Href:   "/dashboard/jobs/" + j.ID + "#questions", Action: "Answer",
			})
		}
	}
	return list
}

// needs lists the other matters that wait for a person, the gravest first. failing is the
// number of projects with open failures, of which only the gravest are listed.
func (d Deps) needs(r *ui.Request, b credits.Balance, now time.Time) (list []need, failing int, err error) {
	rows, _, err := d.Reads.Projects.List(r.Context(), r.Account.ID, projects.Filter{Limit: projectsLooked})
	if err != nil {
		return nil, 0, err
	}
	if list, err = d.failingWebhooks(r, rows); err != nil {
		return nil, 0, err
	}
	stopped, err := d.stoppedReaders(r, now)
	if err != nil {
		return nil, 0, err
	}
	list = append(list, stopped...)
	if b.Available < b.LowBelow {
		list = append(list, need{
			Icon: "coin", Kind: "warn", Text: ui.Credits(b.Available) + " left",
			Detail: fmt.Sprintf("A test by a person costs %s, an urgent one %d.", ui.Credits(job.GeneralQA.Price(false)), job.GeneralQA.Price(true)),
			Href:   "/dashboard/credits", Action: "Open the ledger",
		})
	}
	var soon domain.Credits
	var first time.Time
	for _, lot := range b.Expiring {
		if lot.ExpiresAt.Sub(now) <= soonExpired {
			if soon == 0 {
				first = lot.ExpiresAt
			}
			soon += lot.Amount
		}
	}
	if soon > 0 {
		list = append(list, need{
			Icon: "clock", Kind: "warn", Text: fmt.Sprintf("%s expire %s", ui.Credits(soon), ui.Until(now, first)),
			Detail: "They are spent before other credits.", Href: "/dashboard/credits", Action: "View",
		})
	}
	open, err := d.openFailures(r, rows)
	if err != nil {
		return nil, 0, err
	}
	list = append(list, open[:min(len(open), failingShown)]...)
	slices.SortStableFunc(list, func(a, b need) int { return cmp.Compare(a.gravity(), b.gravity()) })
	return list, len(open), nil
}

// openFailures lists the projects with open failures, the gravest first.
func (d Deps) openFailures(r *ui.Request, rows []projects.Project) (list []need, err error) {
	names := make(map[string]string, len(rows))
	ids := make([]string, len(rows))
	for i, p := range rows {
		ids[i], names[p.ID] = p.ID, p.Name
	}
	failing, err := d.Reads.History.Failing(r.Context(), r.Account.ID, ids, failuresCounted)
	if err != nil {
		return nil, err
	}
	for _, f := range failing {
		detail := f.Gravest
		if f.Failures > 1 {
			detail = fmt.Sprintf("%s, and %d more", detail, f.Failures-1)
		}
		list = append(list, need{
			Icon: "cross", Kind: "fail", Text: fmt.Sprintf("%s in %s", ui.Count(f.Failures, "open failure"), names[f.ProjectID]),
			Detail: detail, Href: "/dashboard/projects/" + f.ProjectID, Action: "View",
		})
	}
	return list, nil
}

// failingWebhooks lists the webhooks that are disabled, and those that will be disabled
// if their servers continue to fail.
func (d Deps) failingWebhooks(r *ui.Request, rows []projects.Project) (list []need, err error) {
	var ids []string
	for _, p := range rows {
		if p.WebhookURL != "" {
			ids = append(ids, p.ID)
		}
	}
	health, err := d.Deliveries.Health(r.Context(), r.Account.ID, ids...)
	if err != nil {
		return nil, err
	}
	for _, p := range rows {
		n := need{Icon: "alert", Kind: "fail", Href: "/dashboard/projects/" + p.ID + "/webhook", Action: "Open"}
		switch words.WebhookState(p, health).Word {
		case "Disabled":
			n.Text = "The webhook of " + p.Name + " is disabled"
			n.Detail = "Nothing is lost: its events are held until you enable it and replay them."
			if failures := health[p.ID].ConsecutiveFailures; failures > 0 {
				n.Detail = ui.Count(failures, "attempt") + " failed in a row. " + n.Detail
			}
		case "Failing":
			n.Kind, n.Text = "warn", "The webhook of "+p.Name+" fails"
			n.Detail = fmt.Sprintf("%s, %s in a row. The webhook is disabled when the last retry fails.", health[p.ID].LastError, ui.Count(health[p.ID].ConsecutiveFailures, "attempt"))
		default:
			continue
		}
		list = append(list, n)
	}
	return list, nil
}

// stoppedReaders lists the readers that are refused or fell behind, for persons who may
// see the page of readers.
func (d Deps) stoppedReaders(r *ui.Request, now time.Time) (list []need, err error) {
	if !r.Role.Includes(person.Developer) {
		return nil, nil
	}
	found, err := d.Readers.Brief(r.Context(), r.Account.ID)
	if err != nil {
		return nil, err
	}
	names := map[readers.State][]string{}
	for _, one := range found {
		names[one.State(now)] = append(names[one.State(now)], one.Name)
	}
	if refused := names[readers.Refused]; len(refused) > 0 {
		list = append(list, need{
			Icon: "alert", Kind: "fail", Text: ui.Count(len(refused), "event reader") + " refused: " + strings.Join(refused, ", "),
			Detail: "The service does not take the cursor. The page says what to do next.",
			Href:   "/dashboard/readers", Action: "See readers",
		})
	}
	if behind := names[readers.Behind]; len(behind) > 0 {
		list = append(list, need{
			Icon: "clock", Kind: "warn", Word: "Behind",
			Text:   ui.Count(len(behind), "event reader") + " behind: " + strings.Join(behind, ", "),
			Detail: "An event is unread for more than an hour.", Href: "/dashboard/readers", Action: "See readers",
		})
	}
	return list, nil
}
