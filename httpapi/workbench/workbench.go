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
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections"
	"humanqa/projections/changes"
	"humanqa/projections/jobs"
)

// Templates are the package's, for ui.Config.
//
//go:embed templates/*.html
var Templates embed.FS

// Deps are the dependencies of the pages. All fields but Voice are required.
type Deps struct {
	Commands *command.Service
	Reads    *projections.Reads
	Evidence *evidence.Service
	Voice    bool // sessions have a voice chat (package room)
	Now      func() time.Time
}

// Pages are the pages of the package.
func Pages(d Deps) []ui.Page {
	const at = "/workbench/jobs/{id}"
	return []ui.Page{
		{Method: "GET", Pattern: "/workbench", For: ui.Checkers, Handle: d.home},
		{Method: "POST", Pattern: "/workbench/claims", For: ui.Checkers, Handle: d.claim},
		{Method: "GET", Pattern: "/workbench/profile", For: ui.Checkers, Handle: d.profile},
		{Method: "POST", Pattern: "/workbench/profile", For: ui.Checkers, Says: "Saved.", Handle: d.saveProfile},

		{Method: "GET", Pattern: at, For: ui.Checkers, Handle: d.bench},
		{Method: "POST", Pattern: at + "/items/{item}", For: ui.Checkers, Says: "The verdict is saved.", Handle: d.check},
		{Method: "POST", Pattern: at + "/questions", For: ui.Checkers, Says: "The question is sent.", Handle: d.ask},
		{Method: "POST", Pattern: at + "/items/{item}/pictures", For: ui.Checkers, Says: "The picture is added.",
			Upload: true, Handle: d.addPicture},
		{Method: "POST", Pattern: at + "/items/{item}/pictures/remove", For: ui.Checkers, Says: "The picture is removed.",
			Handle: d.removePicture},
		{Method: "GET", Pattern: at + "/evidence/{evidence}", For: ui.Checkers, Handle: d.evidence},
		{Method: "POST", Pattern: at + "/recordings", For: ui.Checkers, Handle: d.beginRecording},
		{Method: "POST", Pattern: at + "/recordings/{recording}/parts", For: ui.Checkers, Upload: true, Handle: d.appendRecording},
		{Method: "GET", Pattern: at + "/recordings/{recording}", For: ui.Checkers, Handle: d.recording},
		{Method: "POST", Pattern: at + "/recordings/{recording}/finish", For: ui.Checkers, Handle: d.finishRecording},
		{Method: "POST", Pattern: at + "/marks", For: ui.Checkers, Says: "The moment is marked.", Handle: d.markMoment},
		{Method: "GET", Pattern: at + "/open-failures", For: ui.Checkers, Handle: d.similar},
		{Method: "POST", Pattern: at + "/findings", For: ui.Checkers, Says: "The finding is added.", Handle: d.addFinding},
		{Method: "POST", Pattern: at + "/findings/{finding}", For: ui.Checkers, Says: "The finding is saved.",
			Handle: d.editFinding},
		{Method: "POST", Pattern: at + "/findings/{finding}/withdraw", For: ui.Checkers, Says: "The finding is withdrawn.",
			Handle: d.withdrawFinding},
		{Method: "POST", Pattern: at + "/secrets", For: ui.Checkers, Handle: d.secrets},
		{Method: "POST", Pattern: at + "/heartbeat", For: ui.Checkers, Handle: d.heartbeat},
		{Method: "POST", Pattern: at + "/ready", For: ui.Checkers, Says: "You are ready.", Handle: d.ready},
		{Method: "POST", Pattern: at + "/leave", For: ui.Checkers, Says: "You left the session.", Handle: d.leave},
		{Method: "POST", Pattern: at + "/complete", For: ui.Checkers, Says: "The test is complete.", Handle: d.complete},
		{Method: "POST", Pattern: at + "/disputes/{dispute}", For: ui.Checkers, Says: "Your answer is sent.", Handle: d.answerDispute},
		{Method: "POST", Pattern: at + "/release", For: ui.Checkers, Says: "The test is back in the queue.", Handle: d.release},
		{Method: "POST", Pattern: at + "/untestable", For: ui.Checkers, Says: "Your report is sent.", Handle: d.untestable},
	}
}

const (
	// workShown bounds the list of completed tests.
	workShown = 20
	// lobbySlots bounds the slots of open lobbies that are read.
	lobbySlots = 200
)

type homeView struct {
	Claim   *command.ClaimedJob // nil: none
	Left    int                 // items of it that have no verdict
	Queue   []waiting           // a page of the waiting tests, without the slots of lobbies
	Lobbies []lobby
	Counts  jobs.QueueCounts
	Pager   ui.Pager
	Fits    bool // only those that fit are shown
	Work    []workLine
	Contest []jobs.Work // with disputes to answer
	Record  jobs.Record
	Person  string
}

type waiting struct {
	jobs.QueuedJob
	Soon bool
	Has  bool // it asks for a device, and the checker has it
}

// lobby is a session that waits for checkers. Its button takes Slot: the first slot for
// whose device the checker is equipped, else the first one.
type lobby struct {
	Slot  waiting
	Free  int
	Until time.Time
	Soon  bool
}

type workLine struct {
	jobs.Work
	Stars int // 0: not rated
}

func (d Deps) home(r *ui.Request) (ui.Answer, error) {
	ctx, checker := r.Context(), r.Person.CheckerID()
	done, record, err := d.Reads.Jobs.Done(ctx, checker, workShown)
	if err != nil {
		return ui.Answer{}, err
	}
	held, found, err := d.Commands.LiveClaim(ctx, checker)
	if err != nil {
		return ui.Answer{}, err
	}
	contested, err := d.Reads.Jobs.Contested(ctx, checker, d.Now())
	if err != nil {
		return ui.Answer{}, err
	}
	v := homeView{Contest: contested, Record: record, Person: r.Person.ID, Fits: r.FormValue("show") == "fits"}
	if err := d.queue(r, &v); err != nil {
		return ui.Answer{}, err
	}
	live := []string{changes.Queue, changes.Checker(checker)}
	if found {
		v.Claim, v.Left = &held, left(held.Checklist)
		live = append(live, domain.JobStream(held.JobID))
	}
	for _, w := range contested {
		live = append(live, domain.JobStream(w.JobID))
	}
	for _, w := range done {
		v.Work = append(v.Work, workLine{w, wire.OrZero(w.Rating)})
		live = append(live, domain.JobStream(w.JobID))
	}
	title := "Workbench"
	if v.Counts.Urgent > 0 { // the title is seen also while the tab is not open
		title = fmt.Sprintf("(%d) %s", v.Counts.Urgent, title)
	}
	return ui.Show("workbench", title, v, live...), nil
}

// queue adds the sessions that wait for checkers, and the requested page of all other
// tests. A request for a page behind the end gets the last page.
func (d Deps) queue(r *ui.Request, v *homeView) error {
	ctx, now := r.Context(), d.Now()
	profile, err := d.Reads.Pools.Profile(ctx, r.Person.CheckerID())
	if err != nil {
		return err
	}
	f := jobs.QueueFilter{
		CheckerID: r.Person.CheckerID(), Now: now, Devices: profile.Devices, Fitting: v.Fits, Part: jobs.Lobbies, Limit: lobbySlots,
	}
	if v.Counts, err = d.Reads.Jobs.CountQueue(ctx, f); err != nil {
		return err
	}
	slots, err := d.Reads.Jobs.Queue(ctx, f)
	if err != nil {
		return err
	}
	for n, slot := range slots {
		if n == 0 || slots[n-1].SessionID != slot.SessionID {
			until := *slot.LobbyUntil
			v.Lobbies = append(v.Lobbies, lobby{Slot: waitingOf(slot, now), Until: until, Soon: until.Sub(now) < soon/2})
		}
		l := &v.Lobbies[len(v.Lobbies)-1]
		l.Free++
		if slot.Fits && !l.Slot.Fits {
			l.Slot = waitingOf(slot, now)
		}
	}
	page := min(ui.PageOf(r), max(1, (v.Counts.Other+ui.PageSize-1)/ui.PageSize))
	f.Part, f.Limit, f.Offset = jobs.Others, ui.PageSize, (page-1)*ui.PageSize
	others, err := d.Reads.Jobs.Queue(ctx, f)
	if err != nil {
		return err
	}
	for _, j := range others {
		v.Queue = append(v.Queue, waitingOf(j, now))
	}
	v.Pager = ui.NewPager(r, page, len(others), v.Counts.Other)
	return nil
}

func waitingOf(j jobs.QueuedJob, now time.Time) waiting {
	return waiting{
		QueuedJob: j, Soon: j.DueAt.Sub(now) < soon,
		Has: j.Fits && j.Target.V.Device+j.Target.V.OS+j.Target.V.Browser != "",
	}
}

// soon is the time before the end of an SLA in which a test stands out.
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
		return ui.Go(benchPath(c.JobID)), err
	}
	var taken command.ClaimedJob
	found, err := d.Reads.Jobs.ClaimNext(r.Context(), checker, d.Now(), func(jobID string) (err error) {
		cause.CommandID = domain.NewCommandID() // each attempt is a command of its own
		taken, err = take(jobID)
		return err
	})
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !found:
		return ui.Go("/workbench"), nil
	}
	return ui.Go(benchPath(taken.JobID)), nil
}

func benchPath(jobID string) string { return "/workbench/jobs/" + jobID }

// held gives the checker's live claim, if it is of the path's job.
func (d Deps) held(ctx context.Context, r *ui.Request) (command.ClaimedJob, bool, error) {
	c, found, err := d.Commands.LiveClaim(ctx, r.Person.CheckerID())
	return c, found && c.JobID == r.PathValue("id"), err
}

// answerDispute is the checker's answer to a dispute about a test that they have completed.
func (d Deps) answerDispute(r *ui.Request) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"text": "text"})
	text, jobID := input.DisputeAnswer(form), r.PathValue("id")
	err := form.Problems.Err()
	var at domain.Position
	if err == nil {
		claim := command.Claim{CheckerID: r.Person.CheckerID(), JobID: jobID}
		_, at, err = d.Commands.AnswerDispute(r.Context(), r.Cause(), claim, r.PathValue("dispute"), text)
	}
	return r.Done(at, err, benchPath(jobID))
}
