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
	"humanqa/httpapi/wire"
	"humanqa/projections/credits"
	"humanqa/projections/events"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
	"humanqa/projections/overall"
	"humanqa/projections/projects"
)

const (
	// soonExpired is the time before a lot expires in which the overview warns.
	soonExpired = 7 * 24 * time.Hour

	// What is shown, at most: a list that is longer says so.
	askingShown, worseShown, dayShown = 100, 6, 8
	// projectsLooked is more than any account has.
	projectsLooked = 1000
)

type overviewView struct {
	New bool // nothing was ever tested

	Asked   []askedLine
	AskedOf int // all open questions
	Refused *refusedView
	Needs   []need
	Worse   []worseLine
	WorseOf int       // all projects that got worse
	Failing int       // projects with open failures
	Day     []dayLine // since yesterday
	DayOf   int       // all groups since then
	From    string    // yesterday, UTC

	Pending, Claimed, Completed int

	Balance  credits.Balance
	Low      bool
	Lasts    time.Time // until when the credits last; zero: not known
	BuyURL   string
	Soon     domain.Credits // that expire within a week
	SoonAt   time.Time
	Price    domain.Credits
	Prospect overall.Prospect
	Notices  [][]words.Notice // of one kind each
	SeenTo   string           // the cursor of the newest notice
}

// askedLine is a checker's question that waits for its answer. Its test is paused.
type askedLine struct {
	jobs.Job
	Question job.Question
}

// worseLine is a project with failures that began lately.
type worseLine struct {
	history.Standing
	Name string
}

// dayLine sums tests since yesterday: those of a batch, else those of a project.
type dayLine struct {
	jobs.BatchSummary
	Name string // empty: of no project
}

// need is something else that waits for a person.
type need struct {
	Icon, Kind, Text, Detail, Href, Action string
	Word                                   string // empty: by Kind
}

func (d Deps) overview(r *ui.Request) (ui.Answer, error) {
	v := overviewView{Price: job.GeneralQA.Price(false), BuyURL: d.CreditsURL}
	ctx, account := r.Context(), r.Account.ID
	now, err := d.now(r)
	if err != nil {
		return ui.Answer{}, err
	}
	for status, count := range map[job.Status]*int{
		job.StatusPending: &v.Pending, job.StatusClaimed: &v.Claimed, job.StatusCompleted: &v.Completed,
	} {
		if *count, err = d.Reads.Jobs.Total(ctx, account, status, ""); err != nil {
			return ui.Answer{}, err
		}
	}
	v.New = v.Pending+v.Claimed+v.Completed == 0
	if err := d.lookAtCredits(r, &v, now); err != nil {
		return ui.Answer{}, err
	}
	if err := d.lookAtQuestions(r, &v); err != nil {
		return ui.Answer{}, err
	}
	rows, _, err := d.Reads.Projects.List(ctx, account, projects.Filter{Limit: projectsLooked})
	if err != nil {
		return ui.Answer{}, err
	}
	live := slices.DeleteFunc(slices.Clone(rows), func(p projects.Project) bool { return p.ArchivedAt != nil })
	if v.Needs, err = d.needs(r, live, now); err != nil {
		return ui.Answer{}, err
	}
	if err := d.lookAtProjects(r, &v, rows, live, now); err != nil {
		return ui.Answer{}, err
	}
	if v.Prospect, err = d.Reads.Overall.Prospect(ctx, account, job.GeneralQA, false, d.Now()); err != nil {
		return ui.Answer{}, err
	}
	notices, upTo, err := d.notices(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Notices, v.SeenTo = words.ByKind(notices), upTo
	v.Refused, upTo, err = d.refused(r)
	v.SeenTo = events.LaterCursor(v.SeenTo, upTo)
	answer := ui.Show("overview", "Overview", v, ui.Everything)
	answer.Every = time.Minute // no stream tells which checkers are online
	return answer, err
}

func (d Deps) lookAtCredits(r *ui.Request, v *overviewView, now time.Time) (err error) {
	if v.Balance, err = d.Reads.Credits.Balance(r.Context(), r.Account.ID, now); err != nil {
		return err
	}
	v.Low = v.Balance.Available < v.Balance.LowBelow
	if v.Lasts, err = d.Reads.Ledger.Lasts(r.Context(), r.Account.ID, v.Balance.Available, now); err != nil {
		return err
	}
	for _, lot := range v.Balance.Expiring {
		if lot.ExpiresAt.Sub(now) <= soonExpired {
			if v.Soon == 0 {
				v.SoonAt = lot.ExpiresAt
			}
			v.Soon += lot.Amount
		}
	}
	return nil
}

func (d Deps) lookAtQuestions(r *ui.Request, v *overviewView) error {
	asked, total, err := d.Reads.Jobs.Asking(r.Context(), r.Account.ID, askingShown)
	v.AskedOf = total
	for _, j := range asked {
		if q, open := j.OpenQuestion(); open {
			v.Asked = append(v.Asked, askedLine{j, q})
		}
	}
	return err
}

// lookAtProjects finds which projects got worse, and sums the tests since yesterday.
func (d Deps) lookAtProjects(r *ui.Request, v *overviewView, rows, live []projects.Project, now time.Time) error {
	names := map[string]string{}
	for _, p := range rows {
		names[p.ID] = p.Name
	}
	ids := wire.List(live, func(p projects.Project) string { return p.ID })
	standings, err := d.Reads.History.Standings(r.Context(), r.Account.ID, ids, now.Add(-history.Lately), history.FailuresCounted)
	if err != nil {
		return err
	}
	for _, s := range standings {
		if s.Failures > 0 {
			v.Failing++
		}
		if s.Fresh > 0 {
			v.Worse = append(v.Worse, worseLine{s, names[s.ProjectID]})
		}
	}
	v.WorseOf, v.Worse = len(v.Worse), v.Worse[:min(len(v.Worse), worseShown)]
	yesterday := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	day, groups, err := d.Reads.Jobs.Since(r.Context(), r.Account.ID, yesterday, dayShown)
	for _, b := range day {
		v.Day = append(v.Day, dayLine{b, names[b.ProjectID]})
	}
	v.DayOf, v.From = groups, yesterday.Format(time.DateOnly)
	return err
}

// needs lists what else waits for a person: what is broken stands before what will be.
func (d Deps) needs(r *ui.Request, rows []projects.Project, now time.Time) ([]need, error) {
	list, err := d.failingWebhooks(r, rows)
	if err != nil {
		return nil, err
	}
	stopped, err := d.stoppedReaders(r, now)
	list = append(list, stopped...)
	slices.SortStableFunc(list, func(a, b need) int { return cmp.Compare(a.Kind, b.Kind) }) // fail, warn
	return list, err
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
