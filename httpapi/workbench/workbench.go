// Package workbench has the pages of checkers: the queue, the one claimed test, and
// their completed work.
//
// Everything is a form that works without a script. With one, the forms of a test go
// through an outbox in the browser (assets/src/outbox.ts), so a lost network or a crash
// loses nothing. They are the same forms, answered in JSON. The service keeps the
// draft, and the page shows the same draft as GET /v1/checker/claims.
package workbench

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/ui"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/projections/jobs"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps is what the pages stand on. All fields are required.
type Deps struct {
	Commands *command.Service
	Reads    *projections.Reads
	Evidence *evidence.Service
	Now      func() time.Time
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	const at = "/workbench/jobs/{id}"
	return []ui.Page{
		{Method: "GET", Pattern: "/workbench", For: ui.Checkers, Handle: d.home},
		{Method: "POST", Pattern: "/workbench/claims", For: ui.Checkers, Handle: d.claim},
		{Method: "GET", Pattern: "/workbench/profile", For: ui.Checkers, Handle: d.profile},
		{Method: "POST", Pattern: "/workbench/profile", For: ui.Checkers, Handle: d.saveProfile},

		{Method: "GET", Pattern: at, For: ui.Checkers, Handle: d.bench},
		{Method: "POST", Pattern: at + "/items/{item}", For: ui.Checkers, Handle: d.check},
		{Method: "POST", Pattern: at + "/items/{item}/pictures", For: ui.Checkers, Upload: true, Handle: d.addPicture},
		{Method: "POST", Pattern: at + "/items/{item}/pictures/remove", For: ui.Checkers, Handle: d.removePicture},
		{Method: "GET", Pattern: at + "/evidence/{evidence}", For: ui.Checkers, Handle: d.evidence},
		{Method: "POST", Pattern: at + "/recordings", For: ui.Checkers, Handle: d.beginRecording},
		{Method: "POST", Pattern: at + "/recordings/{recording}/parts", For: ui.Checkers, Upload: true, Handle: d.appendRecording},
		{Method: "GET", Pattern: at + "/recordings/{recording}", For: ui.Checkers, Handle: d.recording},
		{Method: "POST", Pattern: at + "/recordings/{recording}/finish", For: ui.Checkers, Handle: d.finishRecording},
		{Method: "POST", Pattern: at + "/marks", For: ui.Checkers, Handle: d.markMoment},
		{Method: "GET", Pattern: at + "/open-failures", For: ui.Checkers, Handle: d.similar},
		{Method: "POST", Pattern: at + "/findings", For: ui.Checkers, Handle: d.addFinding},
		{Method: "POST", Pattern: at + "/secrets", For: ui.Checkers, Handle: d.secrets},
		{Method: "POST", Pattern: at + "/heartbeat", For: ui.Checkers, Handle: d.heartbeat},
		{Method: "POST", Pattern: at + "/ready", For: ui.Checkers, Handle: d.ready},
		{Method: "POST", Pattern: at + "/leave", For: ui.Checkers, Handle: d.leave},
		{Method: "POST", Pattern: at + "/complete", For: ui.Checkers, Handle: d.complete},
		{Method: "POST", Pattern: at + "/release", For: ui.Checkers, Handle: d.release},
		{Method: "POST", Pattern: at + "/untestable", For: ui.Checkers, Handle: d.untestable},
	}
}

const (
	// queueShown and workShown are how many rows the lists have.
	queueShown = 50
	workShown  = 20
)

type homeView struct {
	Claim  *command.ClaimedJob // nil: none
	Left   int                 // items of it that have no verdict
	Queue  []waiting
	Fit    int  // how many of all that wait fit the checker's profile
	Waits  int  // all that wait
	Fits   bool // only those that fit are shown
	Work   []workLine
	Record jobs.Record
	Person string
}

type waiting struct {
	jobs.QueuedJob
	Host, Kind string
	On         []string // what it is to be tested on
	Soon       bool
	Fits       bool // and it asks for something
}

type workLine struct {
	jobs.Work
	Host  string
	Stars int // 0: not rated
}

func stars(w jobs.Work) int {
	if w.Rating == nil {
		return 0
	}
	return *w.Rating
}

func (d Deps) home(r *ui.Request) (ui.Answer, error) {
	ctx, checker := r.Context(), r.Person.CheckerID()
	queue, err := d.Reads.Jobs.Queue(ctx, checker, queueShown)
	if err != nil {
		return ui.Answer{}, err
	}
	done, record, err := d.Reads.Jobs.Done(ctx, checker, workShown)
	if err != nil {
		return ui.Answer{}, err
	}
	held, found, err := d.Commands.LiveClaim(ctx, checker)
	if err != nil {
		return ui.Answer{}, err
	}
	profile, err := d.Reads.Pools.Profile(ctx, checker)
	if err != nil {
		return ui.Answer{}, err
	}
	v := homeView{Record: record, Person: r.Person.ID, Waits: len(queue), Fits: r.FormValue("show") == "fits"}
	live, urgent := []string{changes.Queue}, 0
	if found {
		v.Claim, v.Left = &held, left(held.Checklist)
		live = append(live, domain.JobStream(held.JobID))
	}
	for _, j := range queue {
		fit := fits(j.Target, profile)
		if fit {
			v.Fit++
		}
		if v.Fits && !fit {
			continue
		}
		if j.Urgent {
			urgent++
		}
		v.Queue = append(v.Queue, waiting{
			QueuedJob: j, Host: ui.HostOf(j.URL), Kind: j.Type.Title(), On: targets(j.Target), Soon: j.DueAt.Sub(d.Now()) < soon,
			Fits: fit && j.Target.Device+j.Target.OS+j.Target.Browser != "",
		})
	}
	for _, w := range done {
		v.Work = append(v.Work, workLine{w, ui.HostOf(w.URL), stars(w)})
		live = append(live, domain.JobStream(w.JobID))
	}
	title := "Workbench"
	if urgent > 0 { // seen where the tab is not
		title = fmt.Sprintf("(%d) %s", urgent, title)
	}
	return ui.Show("workbench", title, v, live...)
}

// soon is how near the end of an SLA has to be to stand out.
const soon = 10 * time.Minute

// left counts the items that wait for a verdict.
func left(items []job.ReportItem) (n int) {
	for _, i := range items {
		if i.Status == job.ItemPending {
			n++
		}
	}
	return n
}

func targets(t job.Target) (on []string) {
	for _, what := range []string{t.Device, t.OS, t.Browser, t.ScreenSize, t.Network} {
		if what != "" {
			on = append(on, what)
		}
	}
	return on
}

// claim takes the test that the form names, or the next of the queue.
func (d Deps) claim(r *ui.Request) (ui.Answer, error) {
	cause, checker := r.Cause(), r.Person.CheckerID()
	take := func(jobID string) (command.ClaimedJob, error) {
		c, err := d.Commands.ClaimJob(r.Context(), cause, checker, jobID)
		if err == nil {
			r.Visible(c.Position)
		}
		return c, err
	}
	if wanted := r.PostFormValue("job"); wanted != "" {
		if _, err := uuid.Parse(wanted); err != nil {
			return ui.Answer{}, domain.NotFound("test")
		}
		c, err := take(wanted)
		if err != nil {
			return ui.Answer{}, err
		}
		return ui.Go(benchPath(c.JobID))
	}
	var taken command.ClaimedJob
	found, err := d.Reads.Jobs.ClaimNext(r.Context(), checker, func(jobID string) (err error) {
		cause.CommandID = command.NewCommandID() // each attempt is a command of its own
		taken, err = take(jobID)
		return err
	})
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !found:
		return ui.Go("/workbench")
	}
	return ui.Go(benchPath(taken.JobID))
}

func benchPath(jobID string) string { return "/workbench/jobs/" + jobID }

// held gives the checker's live claim, if it is of the path's job.
func (d Deps) held(ctx context.Context, r *ui.Request) (command.ClaimedJob, bool, error) {
	c, found, err := d.Commands.LiveClaim(ctx, r.Person.CheckerID())
	return c, found && c.JobID == r.PathValue("id"), err
}
