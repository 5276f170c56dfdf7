package dashboard

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/httpapi"
	"humanqa/httpapi/ui"
	"humanqa/projections/jobs"
	"humanqa/projections/loops"
	"humanqa/projections/projects"
)

type jobView struct {
	jobs.Job
	Host    string
	Link    string // of the URL under test; empty: it is none
	Type    string
	State   state
	Heading string
	Saying  string
	Project *projects.Project
	Loop    *loops.Session // of an agent, in which it is a step

	Items                     []itemView
	Pass, Fail, Skip, Pending int
	Bar                       []segment
	Percent                   int
	Live                      bool

	Report    *jobs.Report
	Recording *shot
	AI        *job.AIReport
	AIPending bool
	Stars     []star
	Timeline  []moment

	MayRetest, MayCancel, MayRate, MayFix, MayPlay bool
	RetestPrice                                    domain.Credits
	Curl                                           string
}

type itemView struct {
	job.ReportItem
	Finding bool // the checker's own, not on the list
	Shot    *shot
	Fixable bool
}

// shot is a picture or a recording. One of ours is shown; anybody else's is a
// link, because a page of ours fetches nothing from elsewhere.
type shot struct {
	Ours bool
	Href string
}

// segment is a part of the bar, in percent.
type segment struct {
	Kind    string
	X, Wide string
}

type star struct {
	N       int
	Checked bool
}

type moment struct {
	At     time.Time
	Text   string
	Detail string
}

func (d Deps) job(r *ui.Request) (ui.Answer, error) {
	j, err := find(r, "test", d.Reads.Jobs.Job)
	if err != nil {
		return ui.Answer{}, err
	}
	v := jobView{
		Job: j, Host: hostOf(j.URL), Link: safeLink(j.URL), Type: j.Type.Title(), State: stateOf(j.Summary()),
		Live:        !j.IsFinal(),
		RetestPrice: j.Price,
		MayRetest:   may(r, person.Developer),
		MayCancel:   may(r, person.Developer) && j.Status == job.StatusPending && j.SessionID == "",
		MayRate:     may(r, person.Developer) && j.Status == job.StatusCompleted && j.Type != job.AIReview,
		MayPlay:     may(r, person.Developer) && r.Account.Sandbox && !j.IsFinal() && len(j.Items) > 0 && j.SessionID == "",
		AIPending:   j.AIReport() == jobs.AIReportGenerating,
	}
	ctx := r.Context()
	items := j.Items
	if j.Status == job.StatusCompleted {
		report, err := d.Reads.Jobs.Report(ctx, j.AccountID, j.ID)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Report, items = &report, report.Items
		v.Recording = shotOf(j.ID, report.RecordingURL)
	}
	if j.AIReport() == jobs.AIReportReady {
		report, err := d.Reads.Jobs.AIReport(ctx, j.AccountID, j.ID)
		if err != nil {
			return ui.Answer{}, err
		}
		v.AI = &report
	}
	fixable, err := d.lookAtProject(ctx, &v)
	if err != nil {
		return ui.Answer{}, err
	}
	v.MayFix = may(r, person.Developer) && len(fixable) > 0
	for _, i := range items {
		v.Items = append(v.Items, itemView{
			ReportItem: i, Finding: strings.HasPrefix(i.ID, "finding"), Shot: shotOf(j.ID, i.ScreenshotURL),
			Fixable: v.MayFix && fixable[i.ID],
		})
	}
	if v.Report != nil { // what needs somebody comes first
		order := []job.ItemStatus{job.ItemFail, job.ItemSkip, job.ItemPass, job.ItemPending}
		slices.SortStableFunc(v.Items, func(a, b itemView) int {
			return slices.Index(order, a.Status) - slices.Index(order, b.Status)
		})
	}
	v.count(items)
	now, err := d.now(r)
	if err != nil {
		return ui.Answer{}, err
	}
	v.tell(now)
	if v.MayRate {
		for n := 1; n <= 5; n++ {
			v.Stars = append(v.Stars, star{n, v.Report.CheckerRating != nil && *v.Report.CheckerRating == n})
		}
	}
	if v.Timeline, err = d.timeline(ctx, j); err != nil {
		return ui.Answer{}, err
	}
	v.Curl = d.curl(j)
	return ui.Show("job", j.Title, v, domain.JobStream(j.ID), domain.CreditsStream(j.AccountID))
}

// lookAtProject finds the project, and which items of the test can be ticked as
// fixed: those that failed in the project's latest test, if that is this one.
func (d Deps) lookAtProject(ctx context.Context, v *jobView) (fixable map[string]bool, err error) {
	if v.ProjectID == "" {
		return nil, nil
	}
	p, err := d.Reads.Projects.Get(ctx, v.AccountID, v.ProjectID)
	if err != nil {
		return nil, err
	}
	v.Project = &p
	if v.LoopID != "" {
		if s, found, err := d.Reads.Loops.OfJob(ctx, v.AccountID, v.ProjectID, v.ID); err != nil {
			return nil, err
		} else if found {
			v.Loop = &s
		}
	}
	failures, err := d.Reads.History.LastFailures(ctx, v.AccountID, v.ProjectID)
	if err != nil || v.Report == nil {
		return nil, err
	}
	fixable = map[string]bool{}
	for _, f := range failures {
		if f.JobID == v.ID {
			fixable[f.ID] = true
		}
	}
	return fixable, nil
}

func (v *jobView) count(items []job.ReportItem) {
	v.Pass, v.Fail, v.Skip = job.Counts(items)
	v.Pending = len(items) - v.Pass - v.Fail - v.Skip
	if len(items) == 0 {
		return
	}
	v.Percent = 100 * (len(items) - v.Pending) / len(items)
	v.Bar = barOf(part{"pass", v.Pass}, part{"fail", v.Fail}, part{"skip", v.Skip}, part{"pending", v.Pending})
}

// part is so many of one kind.
type part struct {
	kind string
	n    int
}

// barOf makes of counts the parts of a bar.
func barOf(parts ...part) (bar []segment) {
	all := 0
	for _, p := range parts {
		all += p.n
	}
	x := 0.0
	for _, p := range parts {
		if p.n == 0 {
			continue
		}
		wide := 100 * float64(p.n) / float64(all)
		bar = append(bar, segment{p.kind, strconv.FormatFloat(x, 'f', 2, 64), strconv.FormatFloat(wide, 'f', 2, 64)})
		x += wide
	}
	return bar
}

// tell says where the test is, in words.
func (v *jobView) tell(now time.Time) {
	checked := len(v.Items) - v.Pending
	switch v.Status {
	case job.StatusPending:
		v.Heading, v.Saying = "Waiting for a checker", "Done "+ui.Until(now, v.DueAt)+" at the latest, or refunded."
		switch {
		case v.Type == job.AIReview.Title():
			v.Heading, v.Saying = "The AI is looking at the page", "This takes a minute or two."
		case v.RequeueCount > 0:
			v.Heading = "Back in the queue"
		case len(v.Items) == 0:
			v.Saying = "The checklist is being written."
		}
		if now.After(v.DueAt) {
			v.Saying = "It is late: it goes back into the queue, or is refunded."
		}
	case job.StatusClaimed:
		v.Heading = "A checker is testing"
		v.Saying = fmt.Sprintf("%d of %s checked, due %s.", checked, ui.Count(len(v.Items), "item"), ui.Until(now, v.DueAt))
	case job.StatusCancelled:
		v.Heading, v.Saying = "Cancelled", refundWords(v.Job)
	case job.StatusFailed:
		v.Heading = "It could not be tested"
		reasons := map[string]string{"sla": "Nobody finished it in time, three times over.", "untestable": "Checkers could not test it.", "operator": "The operator ended it."}
		v.Saying = strings.TrimSpace(reasons[v.FailReason] + " " + refundWords(v.Job))
	case job.StatusCompleted, job.StatusVoided:
		switch v.OverallStatus {
		case job.OverallFail:
			v.Heading = ui.Count(v.Fail, "problem") + " found"
		case job.OverallPass:
			v.Heading = "Everything that was tested works"
		default:
			v.Heading = "Nothing could be tested"
		}
		if v.CompletedAt != nil {
			v.Saying = "Tested in " + took(v.Job) + "."
		}
	}
}

func refundWords(j jobs.Job) string {
	if back := j.Refunded; back > 0 {
		return ui.Credits(back) + " came back."
	}
	return ""
}

// took is how long the checker worked.
func took(j jobs.Job) string {
	from := j.CreatedAt
	if j.ClaimedAt != nil {
		from = *j.ClaimedAt
	}
	d := j.CompletedAt.Sub(from)
	if d < time.Minute {
		return "less than a minute"
	}
	return ui.Count(int(d.Round(time.Minute)/time.Minute), "minute")
}

func shotOf(jobID, stored string) *shot {
	if stored == "" {
		return nil
	}
	if id := httpapi.EvidenceID(stored); id != "" {
		return &shot{Ours: true, Href: "/dashboard/jobs/" + jobID + "/evidence/" + id}
	}
	if link := safeLink(stored); link != "" {
		return &shot{Href: link}
	}
	return nil
}

// timeline tells what happened to the test, as far as it was announced.
func (d Deps) timeline(ctx context.Context, j jobs.Job) ([]moment, error) {
	events, err := d.Reads.Events.OfJob(ctx, j.AccountID, j.ID)
	if err != nil {
		return nil, err
	}
	var told []moment
	for _, e := range events {
		m := moment{At: e.Recorded.Meta.Time}
		switch one := e.Recorded.Event.(type) {
		case *job.Created:
			m.Text, m.Detail = "Submitted", ui.Credits(one.Price)+" charged"
		case *job.Claimed:
			m.Text = "A checker took it"
		case *job.SLAMissed:
			m.Text = "It was not done in time"
			if one.Requeued {
				m.Detail = "back in the queue"
			}
		case *job.Completed:
			m.Text = "Report finished"
			m.Detail = fmt.Sprintf("%d passed, %d failed, %d skipped", one.PassCount, one.FailCount, one.SkipCount)
		case *job.AIReportReady:
			m.Text = "Analysis ready"
		case *job.Cancelled:
			m.Text = "Cancelled"
		case *job.Failed:
			m.Text = "Given up"
		default:
			continue
		}
		told = append(told, m)
	}
	return told, nil
}

// curl is how the same test is started from a terminal.
func (d Deps) curl(j jobs.Job) string {
	quote := func(s string) string { return `'` + strings.ReplaceAll(s, `'`, `'\''`) + `'` }
	in := map[string]any{"url": j.URL}
	if j.Feature != "" {
		in["feature"] = j.Feature
	}
	if j.Urgent {
		in["priority"] = "urgent"
	}
	return "curl " + quote(d.BaseURL+"/v1/hosted/test") + " \\\n  -H \"Authorization: Bearer $API_KEY\" \\\n  -d " + quote(jsonText(in))
}

func (d Deps) reportFile(r *ui.Request) (ui.Answer, error) {
	j, err := find(r, "test", d.Reads.Jobs.Job)
	if err != nil {
		return ui.Answer{}, err
	}
	endings := map[string]string{"junit": "xml", "ctrf": "json", "md": "md"}
	format := r.PathValue("format")
	if endings[format] == "" || j.Status != job.StatusCompleted {
		return ui.Answer{}, domain.NotFound("report")
	}
	content, mediaType, err := d.API.ReportFile(r.Context(), j.AccountID, j, format)
	return ui.Answer{File: &ui.File{Name: "report-" + j.ID + "." + endings[format], Type: mediaType, Content: content}}, err
}

// evidence leads to a picture or a recording of the test, and to nothing else.
func (d Deps) evidence(r *ui.Request) (ui.Answer, error) {
	j, err := find(r, "test", d.Reads.Jobs.Job)
	if err != nil {
		return ui.Answer{}, err
	}
	shown := []string{}
	for _, i := range j.Items {
		shown = append(shown, i.ScreenshotURL)
	}
	if j.Status == job.StatusCompleted {
		report, err := d.Reads.Jobs.Report(r.Context(), j.AccountID, j.ID)
		if err != nil {
			return ui.Answer{}, err
		}
		shown = append(shown, report.RecordingURL)
		for _, i := range report.Items {
			shown = append(shown, i.ScreenshotURL)
		}
	}
	for _, stored := range shown {
		if id := httpapi.EvidenceID(stored); id == "" || id != r.PathValue("evidence") {
			continue
		}
		path, _, err := d.API.EvidencePath(r.Context(), j.AccountID, stored)
		return ui.Answer{Redirect: path}, err
	}
	return ui.Answer{}, domain.NotFound("evidence")
}

func (d Deps) retest(r *ui.Request) (ui.Answer, error) {
	j, err := d.toChange(r)
	if err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.Retest(r.Context(), r.Cause(), j.ID)
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(out.Position)
	return ui.Go("/dashboard/jobs/" + out.JobID)
}

func (d Deps) cancel(r *ui.Request) (ui.Answer, error) {
	j, err := d.toChange(r)
	if err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.CancelJob(r.Context(), r.Cause(), j.ID, "client")
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(out.Position)
	return ui.Go("/dashboard/jobs/" + j.ID)
}

// maxNote bounds a rating's note, in characters.
const maxNote = 2000

func (d Deps) rate(r *ui.Request) (ui.Answer, error) {
	j, err := d.toChange(r)
	if err != nil {
		return ui.Answer{}, err
	}
	rating, err := strconv.Atoi(r.PostFormValue("rating"))
	if err != nil || rating < 1 || rating > 5 {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "rating", Message: "must be 1 to 5"})
	}
	note := strings.TrimSpace(r.PostFormValue("note"))
	if len([]rune(note)) > maxNote {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "note", Message: fmt.Sprintf("must have at most %d characters", maxNote)})
	}
	at, err := d.Commands.RateJob(r.Context(), r.Cause(), j.ID, rating, note)
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(at)
	return ui.Go("/dashboard/jobs/" + j.ID + "#rating")
}

// fixed queues what was ticked for the project's next test.
func (d Deps) fixed(r *ui.Request) (ui.Answer, error) {
	j, err := d.toChange(r)
	if err != nil {
		return ui.Answer{}, err
	}
	ticked := r.PostForm["item"]
	if j.ProjectID == "" || len(ticked) == 0 || len(ticked) > 50 {
		return ui.Go("/dashboard/jobs/" + j.ID)
	}
	fixes, err := d.API.FixesOf(r.Context(), j.AccountID, j.ProjectID, ticked)
	if err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.PrepareNext(r.Context(), r.Cause(), j.ProjectID, fixes)
	if err != nil {
		return ui.Answer{}, err
	}
	r.Visible(out.Position)
	return ui.Go("/dashboard/projects/" + j.ProjectID + "#prepared")
}

// toChange finds the test that a form is about.
func (d Deps) toChange(r *ui.Request) (jobs.Job, error) {
	j, err := find(r, "test", d.Reads.Jobs.Job)
	if err != nil {
		return j, err
	}
	return j, open(r)
}
