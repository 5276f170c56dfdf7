package dashboard

import (
	"strconv"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

// sandboxShown bounds the tests, and the lobbies, that the sandbox's page offers.
const sandboxShown = 20

// A sandbox has a clock of its own and robots for checkers (decisions, "Sandbox").
type sandboxView struct {
	Now     time.Time
	Ahead   string // of the service's time; empty: not at all
	Tests   []jobs.Job
	Lobbies []sessions.Session
	Price   domain.Credits
}

func (d Deps) sandbox(r *ui.Request) (ui.Answer, error) {
	if !r.Account.Sandbox {
		return ui.Answer{}, domain.NotFound("sandbox").WithHint("this account is no sandbox; humanqa account create --sandbox creates one")
	}
	now, err := d.Commands.AccountTime(r.Context(), r.Cause())
	if err != nil {
		return ui.Answer{}, err
	}
	v := sandboxView{Now: now, Price: job.GeneralQA.Price(false)}
	if ahead := now.Sub(d.Now()); ahead > time.Minute {
		v.Ahead = ui.Span(ahead)
	}
	list, _, err := d.Reads.Jobs.List(r.Context(), r.Account.ID, jobs.Filter{Status: job.StatusPending, Limit: sandboxShown})
	if err != nil {
		return ui.Answer{}, err
	}
	for _, j := range list {
		whole, err := d.Reads.Jobs.Job(r.Context(), r.Account.ID, j.ID)
		if err != nil {
			return ui.Answer{}, err
		}
		if whole.SessionID == "" {
			v.Tests = append(v.Tests, whole)
		}
	}
	v.Lobbies, _, err = d.Reads.Sessions.List(r.Context(), r.Account.ID, sessions.Filter{Status: session.StatusLobby, Limit: sandboxShown})
	return ui.Show("sandbox", "Sandbox", v, ui.Everything), err
}

// sandboxed refuses an account that is no sandbox, or that is suspended.
func sandboxed(r *ui.Request) error {
	if !r.Account.Sandbox {
		return account.ErrNoSandbox
	}
	return r.Open()
}

// advance moves the sandbox's clock forward by minutes.
func (d Deps) advance(r *ui.Request) (ui.Answer, error) {
	if err := sandboxed(r); err != nil {
		return ui.Answer{}, err
	}
	minutes, err := strconv.Atoi(r.PostFormValue("minutes"))
	if limit := int(account.MaxAdvance / time.Minute); err != nil || minutes < 1 || minutes > limit {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "minutes",
			Message: "must be a whole number from 1 to " + strconv.Itoa(limit)})
	}
	out, err := d.Commands.AdvanceClock(r.Context(), r.Cause(), time.Duration(minutes)*time.Minute)
	return r.Done(out.Position, err, "/dashboard/sandbox")
}

// expire moves the clock to just after the test is due.
func (d Deps) expire(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	if err := sandboxed(r); err != nil {
		return ui.Answer{}, err
	}
	now, err := d.Commands.AccountTime(r.Context(), r.Cause())
	if err != nil {
		return ui.Answer{}, err
	}
	if by := j.DueAt.Sub(now).Truncate(time.Second) + 2*time.Second; by > 0 && !j.IsFinal() {
		out, err := d.Commands.AdvanceClock(r.Context(), r.Cause(), by)
		if err != nil {
			return ui.Answer{}, err
		}
		r.Visible(out.Position)
	}
	return ui.Go("/dashboard/jobs/" + j.ID), nil
}

// play lets a robot do the test. An item gets the verdict that the form gives it, or passes.
// The form's field "first" can give the verdict of the first item.
func (d Deps) play(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	if err := sandboxed(r); err != nil {
		return ui.Answer{}, err
	}
	const note = "The robot was told to fail this item."
	var results []command.PlayResult
	for i, item := range j.Items {
		verdict := job.ItemStatus(r.PostFormValue("verdict-" + item.ID))
		if verdict == "" && i == 0 {
			verdict = job.ItemStatus(r.PostFormValue("first"))
		}
		switch verdict {
		case job.ItemFail:
			results = append(results, command.PlayResult{Item: item.ID, Status: job.ItemFail, Note: note})
		case job.ItemSkip:
			results = append(results, command.PlayResult{Item: item.ID, Status: job.ItemSkip})
		case job.ItemPass, job.ItemPending:
		}
	}
	summary := "A robot did this test. All items passed."
	if len(results) > 0 {
		summary = "A robot did this test. Some items failed."
	}
	_, at, err := d.Commands.PlayJob(r.Context(), r.Cause(), j.ID, results, summary)
	return r.Done(at, err, "/dashboard/jobs/"+j.ID)
}

// gather fills a lobby with robots, so that the session starts.
func (d Deps) gather(r *ui.Request, s sessions.Session) (ui.Answer, error) {
	if err := sandboxed(r); err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.ReadySlots(r.Context(), r.Cause(), s.ID, nil)
	return r.Done(out.Position, err, "/dashboard/sessions/"+s.ID)
}
