package dashboard

import (
	"slices"
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
	"humanqa/webhooks"
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
	// Disabled are the projects whose webhook is disabled; the webhooks of Troubled will be if
	// their servers continue to fail.
	Disabled, Troubled []projects.Project
	Health             map[string]webhooks.Health
	// Stopped are the names of readers that are refused; those of Behind fell behind.
	Stopped, Behind []string

	Worse   []history.Standing
	WorseOf int                 // all projects that got worse
	Failing int                 // projects with open failures
	Day     []jobs.BatchSummary // since yesterday: of a batch, else of a project
	DayOf   int                 // all groups since then
	From    string              // yesterday, UTC
	Names   map[string]string   // of projects

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

func (d Deps) overview(r *ui.Request) (ui.Answer, error) {
	v := overviewView{Price: job.GeneralQA.Price(false), BuyURL: d.CreditsURL}
	ctx, account := r.Context(), r.Account.ID
	now, err := d.Commands.AccountTime(r.Context(), r.Cause())
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
	if err := d.lookAtWebhooks(r, &v, live); err != nil {
		return ui.Answer{}, err
	}
	if err := d.lookAtReaders(r, &v, now); err != nil {
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
	v.Names = words.ProjectNames(rows)
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
			v.Worse = append(v.Worse, s)
		}
	}
	v.WorseOf, v.Worse = len(v.Worse), v.Worse[:min(len(v.Worse), worseShown)]
	yesterday := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -1)
	v.From = yesterday.Format(time.DateOnly)
	v.Day, v.DayOf, err = d.Reads.Jobs.Since(r.Context(), r.Account.ID, yesterday, dayShown)
	return err
}

// lookAtWebhooks finds the webhooks that are disabled, and those that will be disabled
// if their servers continue to fail.
func (d Deps) lookAtWebhooks(r *ui.Request, v *overviewView, rows []projects.Project) (err error) {
	ids := wire.List(rows, func(p projects.Project) string { return p.ID })
	if v.Health, err = d.Deliveries.Health(r.Context(), r.Account.ID, ids...); err != nil {
		return err
	}
	for _, p := range rows {
		switch words.WebhookState(p, v.Health).Word {
		case "Disabled":
			v.Disabled = append(v.Disabled, p)
		case "Failing":
			v.Troubled = append(v.Troubled, p)
		}
	}
	return nil
}

// lookAtReaders finds the readers that are refused or fell behind, for persons who may
// see the page of readers.
func (d Deps) lookAtReaders(r *ui.Request, v *overviewView, now time.Time) error {
	if !r.Role.Includes(person.Developer) {
		return nil
	}
	found, err := d.Readers.Brief(r.Context(), r.Account.ID)
	for _, one := range found {
		switch one.State(now) {
		case readers.Refused:
			v.Stopped = append(v.Stopped, one.Name)
		case readers.Behind:
			v.Behind = append(v.Behind, one.Name)
		case readers.Current:
		}
	}
	return err
}
