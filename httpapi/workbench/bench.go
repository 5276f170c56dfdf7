package workbench

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/changes"
	"humanqa/projections/jobs"
	"humanqa/projections/sessions"
)

type benchView struct {
	command.ClaimedJob
	Person  string
	Secrets bool // there is something to reveal
	Items   []itemView
	Left    int
	Skips   []string
	Kinds   []string      // of questions
	Open    *job.Question // waits for the client's answer; nil: none
	Levels  []job.Severity
	Lobby   *sessions.Session // of a slot that waits
	Voice   *ui.Voice         // nil: there is none
}

type itemView struct {
	job.ReportItem
	N     int
	Shots []shot
}

// shot is a picture. One that this service keeps can be shown; any other one is a link.
type shot struct {
	Stored, ID, Href string
}

func shotsOf(jobID string, i job.ReportItem) (shots []shot) {
	for _, stored := range i.Screenshots() {
		s := shot{Stored: stored, ID: evidence.ID(stored)}
		if s.ID != "" {
			s.Href = benchPath(jobID) + "/evidence/" + s.ID
		} else {
			s.Href = ui.SafeLink(stored)
		}
		shots = append(shots, s)
	}
	return shots
}

func itemsOf(jobID string, items []job.ReportItem) []itemView {
	out := make([]itemView, len(items))
	for n, i := range items {
		out[n] = itemView{i, n + 1, shotsOf(jobID, i)}
	}
	return out
}

// bench shows the claimed test, or the result of a test that the checker has completed. Of
// any other test it says that the checker does not hold it.
func (d Deps) bench(r *ui.Request) (ui.Answer, error) {
	if _, err := uuid.Parse(r.PathValue("id")); err != nil {
		return ui.Answer{}, domain.NotFound("test")
	}
	c, mine, err := d.held(r.Context(), r)
	if err != nil {
		return ui.Answer{}, err
	}
	if mine {
		return d.show(r, c)
	}
	w, err := d.doneBy(r)
	switch {
	case domain.IsKind(err, domain.KindNotFound):
		return d.lost(r, errGone)
	case err != nil:
		return ui.Answer{}, err
	}
	return ui.Show("done", w.Title, doneView{
		Work: w, Items: itemsOf(w.JobID, w.Items), Stars: wire.OrZero(w.Rating), Person: r.Person.ID,
	}, domain.JobStream(w.JobID)), nil
}

// doneBy gives the path's test as one that the checker has completed. It waits until the
// read models show the completion.
func (d Deps) doneBy(r *ui.Request) (jobs.Work, error) {
	ctx, checker, id := r.Context(), r.Person.CheckerID(), r.PathValue("id")
	w, err := d.Reads.Jobs.DoneBy(ctx, checker, id)
	if !domain.IsKind(err, domain.KindNotFound) {
		return w, err
	}
	at, done, errDone := d.Commands.CompletedBy(ctx, checker, id)
	if errDone != nil || !done {
		return w, errors.Join(errDone, err)
	}
	r.Visible(at)
	return d.Reads.Jobs.DoneBy(ctx, checker, id)
}

// show is the page of the claimed test.
func (d Deps) show(r *ui.Request, c command.ClaimedJob) (ui.Answer, error) {
	v := benchView{
		Person:  r.Person.ID,
		Secrets: c.Brief.HasSecrets,
		Left:    left(c.Checklist), Skips: job.SkipReasons(), Kinds: job.QuestionKinds(),
		Levels: []job.Severity{job.Critical, job.Major, job.Minor},
	}
	for _, told := range c.Brief.Questions {
		if told.Open() {
			v.Open = &told.Question
		}
	}
	v.ClaimedJob, v.Items = c, itemsOf(c.JobID, c.Checklist)
	if c.SessionID != "" {
		s, err := d.Reads.Sessions.Session(r.Context(), c.AccountID, c.SessionID)
		if err != nil {
			return ui.Answer{}, err
		}
		if c.Waiting {
			v.Lobby = &s
		}
		if d.Voice && s.VoiceEnabled && s.ClosedAt == nil {
			v.Voice = &ui.Voice{Path: "/workbench/sessions/" + c.SessionID}
		}
	}
	return ui.Show("bench", c.Brief.Title, &v, domain.JobStream(c.JobID), changes.Queue), nil
}

var errGone = domain.Conflict("you do not hold this test").
	WithHint("it returned to the queue, another checker has it, or it has ended")

type lostView struct {
	Message, Hint string
	Person        string
	Said          []string // the texts that were sent, but not taken
}

// lost tells why the claim does not hold, and gives back the texts that were written under
// it. A checker who never held the test does not learn that it exists.
func (d Deps) lost(r *ui.Request, why *domain.Error) (ui.Answer, error) {
	if r.WantsJSON() {
		return ui.Answer{}, why
	}
	v := lostView{Message: ui.Sentence(why.Message), Hint: ui.Sentence(why.Hint), Person: r.Person.ID}
	for _, field := range []string{"description", "note", "summary", "reason"} {
		if said := r.PostFormValue(field); said != "" && (field != "reason" || !slices.Contains(job.SkipReasons(), said)) {
			v.Said = append(v.Said, said)
		}
	}
	status := 409
	if why == errGone {
		status = 404
	}
	return ui.Answer{Template: "lost", Title: "You no longer hold this test", View: v, Status: status}, nil
}

type doneView struct {
	jobs.Work
	Items  []itemView
	Stars  int // 0: not rated
	Person string
}

// claimOf reads the claim that a form was sent under.
func claimOf(r *ui.Request) command.Claim {
	token, _ := strconv.ParseInt(r.FormValue("token"), 10, 32) // 0 is no claim's
	return command.Claim{CheckerID: r.Person.CheckerID(), JobID: r.PathValue("id"), Token: int(token)}
}

// acted answers a form of the bench with the next page, in JSON for the page's script. A
// form of a lost claim gets the reason and its texts back (lost).
func (d Deps) acted(r *ui.Request, at domain.Position, err error, next string) (ui.Answer, error) {
	if err == nil {
		r.Visible(at)
		if r.WantsJSON() {
			// If the script leaves the bench, the next page tells the result.
			stays := next != "/workbench" && !strings.HasSuffix(r.Pattern, "/complete")
			return ui.Answer{JSON: map[string]string{"next": next}, Silent: stays}, nil
		}
		return ui.Go(next), nil
	}
	var refused *domain.Error
	if r.WantsJSON() || !errors.As(err, &refused) || refused.Kind != domain.KindConflict {
		return ui.Answer{}, err
	}
	c, mine, errHeld := d.held(r.Context(), r)
	switch {
	case errHeld != nil:
		return ui.Answer{}, errHeld
	case mine && c.Token == claimOf(r).Token:
		return ui.Answer{}, err
	}
	return d.lost(r, refused)
}

func itemAt(r *ui.Request) string {
	return benchPath(r.PathValue("id")) + "#item-" + r.PathValue("item")
}

// check takes a verdict, or takes one back.
func (d Deps) check(r *ui.Request) (ui.Answer, error) {
	if r.PostFormValue("status") != string(job.ItemSkip) {
		r.PostForm.Del("reason") // the form always has one chosen
	}
	form := ui.Form(r, map[string]string{"status": "status", "note": "note", "severity": "severity", "reason": "reason"})
	in, err := input.Check(form, r.PathValue("item")), form.Problems.Err()
	in.KeepScreenshots = true
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.CheckItem(r.Context(), r.Cause(), claimOf(r), in)
	}
	return d.acted(r, at, err, itemAt(r))
}

// ask sends a question to the client. The clocks are paused until the answer.
func (d Deps) ask(r *ui.Request) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"text": "text", "item": "itemId", "kind": "kind"})
	in, err := input.Question(form), form.Problems.Err()
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.AskQuestion(r.Context(), r.Cause(), claimOf(r), in)
	}
	return d.acted(r, at, err, benchPath(r.PathValue("id"))+"#questions")
}

func (d Deps) addFinding(r *ui.Request) (ui.Answer, error) {
	return d.saysFinding(r, func(in job.Finding) (domain.Position, error) {
		_, at, err := d.Commands.AddFinding(r.Context(), r.Cause(), claimOf(r), in)
		return at, err
	})
}

func (d Deps) editFinding(r *ui.Request) (ui.Answer, error) {
	return d.saysFinding(r, func(in job.Finding) (domain.Position, error) {
		if _, err := uuid.Parse(r.PathValue("finding")); err != nil {
			return domain.Position{}, domain.NotFound("finding")
		}
		_, at, err := d.Commands.EditFinding(r.Context(), r.Cause(), claimOf(r), r.PathValue("finding"), in)
		return at, err
	})
}

func (d Deps) saysFinding(r *ui.Request, say func(job.Finding) (domain.Position, error)) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"status": "status", "note": "note", "severity": "severity", "description": "description",
		"key": "key"})
	in, err := input.Finding(form), form.Problems.Err()
	var at domain.Position
	if err == nil {
		at, err = say(in)
	}
	return d.acted(r, at, err, findingsAt(r))
}

func (d Deps) withdrawFinding(r *ui.Request) (ui.Answer, error) {
	if _, err := uuid.Parse(r.PathValue("finding")); err != nil {
		return ui.Answer{}, domain.NotFound("finding")
	}
	at, err := d.Commands.WithdrawFinding(r.Context(), r.Cause(), claimOf(r), r.PathValue("finding"))
	return d.acted(r, at, err, findingsAt(r))
}

func findingsAt(r *ui.Request) string { return benchPath(r.PathValue("id")) + "#findings" }

// addPicture takes a picture for an item, whatever its verdict.
func (d Deps) addPicture(r *ui.Request) (ui.Answer, error) {
	var at domain.Position
	upload := r.Cause()
	upload.CommandID = domain.DeriveID(upload.CommandID, "upload") // showing it is a command of its own, on the same stream
	stored, err := d.Evidence.CollectRequest(r.Writer, r.Request, upload, claimOf(r))
	if err == nil {
		err = d.Evidence.Give(r.Context(), r.PathValue("id"), []string{stored}, func() (err error) {
			at, err = d.Commands.ShowScreenshot(r.Context(), r.Cause(), claimOf(r), r.PathValue("item"), stored)
			return err
		})
	}
	return d.acted(r, at, err, itemAt(r))
}

// removePicture takes a picture away from an item. A picture that no item shows any more
// is deleted.
func (d Deps) removePicture(r *ui.Request) (ui.Answer, error) {
	stored := r.PostFormValue("picture")
	var at domain.Position
	err := d.Evidence.Drop(r.Context(), r.PathValue("id"), stored, func() (left command.Hidden, err error) {
		left, at, err = d.Commands.HideScreenshot(r.Context(), r.Cause(), claimOf(r), r.PathValue("item"), stored)
		return left, err
	})
	return d.acted(r, at, err, itemAt(r))
}

// evidence leads to a picture of the claimed test, or of one that the checker has
// completed.
func (d Deps) evidence(r *ui.Request) (ui.Answer, error) {
	c, mine, err := d.held(r.Context(), r)
	if err != nil {
		return ui.Answer{}, err
	}
	account, items := c.AccountID, c.Checklist
	if !mine {
		w, err := d.doneBy(r)
		if err != nil {
			return ui.Answer{}, err
		}
		account, items = w.AccountID, w.Items
	}
	for _, i := range items {
		for _, s := range shotsOf(r.PathValue("id"), i) {
			if s.ID != "" && s.ID == r.PathValue("evidence") {
				path, _, err := d.Evidence.Path(r.Context(), account, s.Stored)
				return ui.Answer{Redirect: path}, err
			}
		}
	}
	return ui.Answer{}, domain.NotFound("evidence")
}

// secretsFor is the time for which a client's secrets are shown.
const secretsFor = 20 * time.Second

type secretsView struct {
	JobID              string `json:"-"`
	Username           string `json:"username"`
	Password           string `json:"password"`
	Notes              string `json:"notes"`
	AccessInstructions string `json:"accessInstructions"`
	// Answers are secrets that the client sent with answers, the newest first.
	Answers []secretAnswer `json:"answers"`
	Seconds int            `json:"seconds"`
}

// secretAnswer is a secret, and the question that it came for.
type secretAnswer struct {
	Question string `json:"question"`
	Secret   string `json:"secret"`
}

// secrets shows how to sign in to the tested app, for a moment, under the live
// claim. No other page holds the secrets.
func (d Deps) secrets(r *ui.Request) (ui.Answer, error) {
	c, mine, err := d.held(r.Context(), r)
	switch {
	case err != nil:
		return ui.Answer{}, err
	case !mine || c.Token != claimOf(r).Token:
		return d.lost(r, errGone)
	}
	brief, at, err := d.Commands.Reveal(r.Context(), r.Cause(), claimOf(r))
	if err != nil {
		return d.acted(r, at, err, "")
	}
	r.Visible(at)
	v := secretsView{JobID: c.JobID, AccessInstructions: brief.AccessInstructions, Seconds: int(secretsFor.Seconds())}
	if known := brief.Credentials; known != nil {
		v.Username, v.Password, v.Notes = known.Username, known.Password, known.Notes
	}
	for _, q := range slices.Backward(brief.Questions) {
		if q.HasSecret {
			v.Answers = append(v.Answers, secretAnswer{q.Text, q.Secret})
		}
	}
	if r.WantsJSON() {
		return ui.Answer{JSON: v}, nil
	}
	return ui.Answer{Template: "secrets", Title: "How to sign in", View: v, Secret: true, For: secretsFor, Then: benchPath(c.JobID)}, nil
}

// heartbeat says that the checker is still there, and tells the page the time.
func (d Deps) heartbeat(r *ui.Request) (ui.Answer, error) {
	beat, _, err := d.Commands.Heartbeat(r.Context(), r.Cause(), claimOf(r))
	if err != nil {
		return d.acted(r, domain.Position{}, err, "")
	}
	return ui.Answer{JSON: map[string]any{
		"dueAt": beat.DueAt.UTC(), "silentAt": beat.SilentAt.UTC(), "now": d.Now().UTC(), "stands": beat.Stands,
	}}, nil
}

func (d Deps) complete(r *ui.Request) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"summary": "summary"})
	summary, err := input.Summary(form), form.Problems.Err()
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.CompleteJob(r.Context(), r.Cause(), claimOf(r), command.CompleteJob{Summary: summary})
	}
	return d.acted(r, at, err, benchPath(r.PathValue("id")))
}

func (d Deps) release(r *ui.Request) (ui.Answer, error) {
	at, err := d.Commands.ReleaseJob(r.Context(), r.Cause(), claimOf(r))
	return d.acted(r, at, err, "/workbench")
}

func (d Deps) untestable(r *ui.Request) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"reason": "reason", "note": "note"})
	reason, note := input.Untestable(form)
	err := form.Problems.Err()
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.ReportUntestable(r.Context(), r.Cause(), claimOf(r), reason, note)
	}
	return d.acted(r, at, err, "/workbench")
}

// ready and leave are for the slots of a session, which begin together.
func (d Deps) ready(r *ui.Request) (ui.Answer, error) {
	return d.inSession(r, d.Commands.ReadySession, benchPath(r.PathValue("id")))
}

func (d Deps) leave(r *ui.Request) (ui.Answer, error) {
	return d.inSession(r, d.Commands.LeaveSession, "/workbench")
}

func (d Deps) inSession(
	r *ui.Request, act func(context.Context, command.Cause, string, string) (command.CheckerSession, error), next string,
) (ui.Answer, error) {
	c, mine, err := d.held(r.Context(), r)
	if err != nil {
		return ui.Answer{}, err
	}
	if !mine || c.SessionID == "" {
		return d.lost(r, errGone)
	}
	s, err := act(r.Context(), r.Cause(), r.Person.CheckerID(), c.SessionID)
	return d.acted(r, s.Position, err, next)
}
