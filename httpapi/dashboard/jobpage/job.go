package jobpage

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/retention"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/input"
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/credential"
	"humanqa/projections/commitstatuses"
	"humanqa/projections/history"
	"humanqa/projections/jobs"
	"humanqa/projections/loops"
	"humanqa/projections/projects"
)

type jobView struct {
	jobs.Job
	Project *projects.Project
	Loop    *loops.Session // the agent's loop in which the test is a step

	Prospect string // the expected wait for a checker; empty: it waits for none

	AtCommit *commitstatuses.Status // nil: no commit status was asked for

	// Due is the end of the time limit in words, by the account's clock; Overdue says that it is over.
	Due     string
	Overdue bool

	Items                     []itemView
	Pass, Fail, Skip, Pending int
	Checked, Percent          int
	Live                      bool

	Report    *jobs.Report
	Recording *shot
	Films     []filmView
	AI        *job.AIReport
	AIPending bool
	ByAI      bool // a review, which no checker works on
	Stars     int  // of the rating; 0: not rated
	Timeline  []moment
	Untested  []moment // reports of checkers that could not test it

	Open      *job.Question // waits for an answer; nil: none
	MayAnswer bool
	Errors    []string

	MayRetest, MayCancel, MayRate, MayFix, MayPlay, MayShare, MayHold, MayDispute bool

	Tester      string // the pseudonym of the checker whose report it is; empty: none, or it is not told
	RetestPrice domain.Credits
	OtherBugs   []job.Bug // those of the analysis that belong to no failure
	Curl        string
	Here        string // the page, to be copied
	Brief       string // for a coding agent; empty: nothing failed
	Shares      []credential.Share
	SharedBy    map[string]credential.Person // the people who made the links
	NewShare    string                       // the link, shown once
	Shared      bool                         // the page was opened by such a link
	Newer       string                       // the project's latest completed job, if it is another one

	gone map[string]*retention.Gone // evidence that is kept no longer
}

type itemView struct {
	job.ReportItem
	Finding bool // the checker's own, not on the list
	Shots   []*shot
	Fixable bool
	Bug     job.Bug // the analysis of the failure
	// PassedAt is the item's latest pass in a later test; nil: it has none, or fails again.
	PassedAt *time.Time
	Since    *history.OpenFailure // its lineage; nil: it does not fail now
	Issue    string               // the failure as Markdown, for a tracker of issues
	Dispute  *job.Dispute         // of its verdict; nil: there is none
}

// Decision says how the dispute was decided.
func (i itemView) Decision() string { return report.DecisionWords(i.Dispute.Decision()) }

// Failures, Skips and Passes are the parts of a report. Its items stand in this order.
func (v jobView) Failures() []itemView { return v.Items[:v.Fail] }

// Skips are the items without a verdict.
func (v jobView) Skips() []itemView { return v.Items[v.Fail : v.Fail+v.Skip] }

// Passes are the others.
func (v jobView) Passes() []itemView { return v.Items[v.Fail+v.Skip:] }

func (d Deps) job(r *ui.Request) (ui.Answer, error) {
	v, err := d.jobPage(r)
	answer := ui.Show("job", v.Title, v, domain.JobStream(v.ID), domain.CreditsStream(v.AccountID))
	if v.AtCommit != nil { // one of the tests with the same verdict records the status
		answer.Live = append(answer.Live, domain.JobStream(v.AtCommit.Statement))
	}
	if v.Prospect != "" {
		answer.Every = time.Minute // no stream tells which checkers are online
	}
	return answer, err
}

// jobPage is the test as the people of its account see it.
func (d Deps) jobPage(r *ui.Request) (jobView, error) {
	j, err := ui.Find(r, "test", d.Reads.Jobs.Job)
	if err != nil {
		return jobView{}, err
	}
	ctx := r.Context()
	v, err := d.jobView(ctx, j, "/dashboard/jobs/"+j.ID)
	if err != nil {
		return jobView{}, err
	}
	d.allow(r, &v)
	fixable, err := d.lookAtProject(ctx, &v)
	if err != nil {
		return jobView{}, err
	}
	v.MayFix = v.MayRetest && len(fixable) > 0
	for i := range v.Items {
		v.Items[i].Fixable = v.MayFix && fixable[v.Items[i].ID]
	}
	if v.Report != nil {
		v.Stars = wire.OrZero(v.Report.CheckerRating)
	}
	if v.Films, err = d.films(ctx, j, j.Recordings); err != nil {
		return jobView{}, err
	}
	for i, recording := range j.Recordings {
		v.Films[i].Gone = v.gone[recording.URL]
	}
	if v.Report != nil && slices.ContainsFunc(j.Recordings, func(r job.Recording) bool { return r.URL == v.Report.RecordingURL }) {
		v.Recording = nil // it is one of the films
	}
	d.Fresh.Feed(ctx, r.Log)
	if v.Timeline, err = d.timeline(ctx, j); err != nil {
		return jobView{}, err
	}
	if v.Prospect, err = d.prospect(ctx, j); err != nil {
		return jobView{}, err
	}
	if v.Tester, err = d.tester(ctx, v); err != nil {
		return jobView{}, err
	}
	if at, found, err := d.Reads.Commits.OfJob(ctx, j.AccountID, j.ID); err != nil {
		return jobView{}, err
	} else if found {
		v.AtCommit = &at
	}
	if v.Report == nil {
		v.Untested = slices.DeleteFunc(slices.Clone(v.Timeline), func(m moment) bool { return m.Text != untestableWords })
	}
	v.Curl = d.curl(j)
	if err := d.issues(ctx, &v); err != nil {
		return jobView{}, err
	}
	v.Brief, v.Here = d.brief(v), d.BaseURL+"/dashboard/jobs/"+v.ID
	if v.MayShare {
		err = d.lookAtShares(ctx, &v)
	}
	return v, err
}

// tester is the pseudonym of the checker whose report the test has; empty: none.
func (d Deps) tester(ctx context.Context, v jobView) (string, error) {
	if v.Report == nil || v.ByAI {
		return "", nil
	}
	of, err := d.Reads.Overall.Job(ctx, v.ID)
	if err != nil || of.CheckerID == "" {
		return "", err
	}
	return d.Commands.Pseudonym(ctx, v.AccountID, of.CheckerID)
}

// allow says which acts the page offers to its reader.
func (d Deps) allow(r *ui.Request, v *jobView) {
	j, developer := v.Job, r.May(person.Developer)
	v.RetestPrice, v.MayRetest = j.Price, developer
	v.MayCancel = developer && j.Status == job.StatusPending && j.SessionID == ""
	v.MayRate = developer && j.Status == job.StatusCompleted && !j.Type.Automatic()
	v.MayPlay = developer && r.Account.Sandbox && !j.IsFinal() && len(j.Items) > 0 && j.SessionID == ""
	v.MayShare = developer && v.Report != nil
	v.MayDispute = v.MayShare && d.Now().Before(v.Report.CreatedAt.Add(job.DisputeWithin))
	v.MayHold = r.May(person.Owner)
	v.MayAnswer = developer && v.Open != nil
}

// jobView is the part of the page that every reader of the test may see. The paths of
// evidence that this service keeps begin with base.
func (d Deps) jobView(ctx context.Context, j jobs.Job, base string) (v jobView, err error) {
	v = jobView{
		Job: j, ByAI: j.Type.Automatic(), Live: !j.IsFinal(), AIPending: j.AIReport() == jobs.AIReportGenerating,
	}
	if v.gone, err = d.goneOf(ctx, j); err != nil {
		return v, err
	}
	items := j.Items
	if j.Status == job.StatusCompleted {
		result, err := d.Reads.Jobs.Report(ctx, j.AccountID, j.ID)
		if err != nil {
			return v, err
		}
		v.Report, items = &result, result.Items
		v.Recording = shotOf(base, result.RecordingURL, v.gone)
	}
	if j.AIReport() == jobs.AIReportReady {
		analysis, err := d.Reads.Jobs.AIReport(ctx, j.AccountID, j.ID)
		if err != nil {
			return v, err
		}
		v.AI = &analysis
	}
	if q, open := j.OpenQuestion(); open {
		v.Open = &q
	}
	v.Items = itemViews(items, base, v.gone)
	for i := range v.Items {
		if at := slices.IndexFunc(j.Disputes, func(d job.Dispute) bool { return d.ItemID == v.Items[i].ID }); at >= 0 {
			v.Items[i].Dispute = &j.Disputes[at]
		}
	}
	if v.Report != nil { // failures come first, then skips
		order := []job.ItemStatus{job.ItemFail, job.ItemSkip, job.ItemPass, job.ItemPending}
		slices.SortStableFunc(v.Items, func(a, b itemView) int {
			return slices.Index(order, a.Status) - slices.Index(order, b.Status)
		})
	}
	v.count(items)
	if err := d.lookAtLater(ctx, &v); err != nil {
		return v, err
	}
	v.explain()
	now, err := d.Commands.AccountTime(ctx, command.Cause{AccountID: j.AccountID, Sandbox: j.Sandbox})
	if err != nil {
		return v, err
	}
	v.Due, v.Overdue = ui.Until(now, j.DueAt), now.After(j.DueAt)
	return v, nil
}

// explain puts the analysis of a failure beside it. Other bugs stay with the analysis.
func (v *jobView) explain() {
	if v.AI == nil {
		return
	}
	failed := map[string]*itemView{}
	for i, item := range v.Failures() {
		failed[item.ID] = &v.Items[i]
	}
	for _, bug := range v.AI.Bugs {
		item, known := failed[bug.ItemID]
		if !known || item.Bug.Title != "" {
			v.OtherBugs = append(v.OtherBugs, bug)
			continue
		}
		item.Bug = bug
		if v.AI.GeneratedBy == "rules" {
			item.Bug.Description = "" // the note and the expectation, which stand there
		}
	}
}

func itemViews(items []job.ReportItem, base string, gone map[string]*retention.Gone) (list []itemView) {
	for _, i := range items {
		list = append(list, itemView{ReportItem: i, Finding: i.IsFinding(), Shots: shotsOf(base, i, gone)})
	}
	return list
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

// lookAtLater finds what the project's other tests say of the report's failures.
func (d Deps) lookAtLater(ctx context.Context, v *jobView) error {
	if v.Report == nil || v.ProjectID == "" {
		return nil
	}
	open, err := d.Reads.History.Open(ctx, v.AccountID, v.ProjectID, history.FailuresCounted)
	if err != nil {
		return err
	}
	failed := map[string]*itemView{}
	for i, item := range v.Failures() {
		failed[item.Key] = &v.Items[i]
		if at := slices.IndexFunc(open, func(f history.OpenFailure) bool { return f.Key == item.Key }); at >= 0 {
			v.Items[i].Since = &open[at]
		}
	}
	newest, err := d.Reads.History.NewestTest(ctx, v.AccountID, v.ProjectID)
	if err != nil || newest == v.ID {
		return err
	}
	v.Newer = newest
	again, err := d.Reads.History.PassedAgain(ctx, v.AccountID, v.ProjectID, slices.Collect(maps.Keys(failed)), v.Report.CreatedAt)
	for _, one := range again {
		failed[one.Key].PassedAt = &one.At
	}
	return err
}

func (v *jobView) count(items []job.ReportItem) {
	v.Pass, v.Fail, v.Skip = job.Counts(items)
	v.Checked = v.Pass + v.Fail + v.Skip
	v.Pending = len(items) - v.Checked
	if len(items) == 0 {
		return
	}
	v.Percent = 100 * v.Checked / len(items)
}

// curl is the command that starts this test from a terminal. It has the test's checklist,
// but not the checker's login. A review makes its own list.
func (d Deps) curl(j jobs.Job) string {
	in := map[string]any{"url": j.URL, "title": j.Title, "description": j.Description, "jobType": j.Type, "slaMinutes": j.SLAMinutes}
	if j.Urgent {
		in["priority"] = "urgent"
	}
	for name, value := range map[string]string{
		"projectId": j.ProjectID, "targetDevice": j.Target.Device, "targetOS": j.Target.OS, "targetBrowser": j.Target.Browser,
		"targetScreenSize": j.Target.ScreenSize, "targetNetwork": j.Target.Network,
	} {
		if value != "" {
			in[name] = value
		}
	}
	var items []map[string]any
	for _, item := range j.Items {
		if item.IsFinding() || j.Type.Automatic() {
			continue
		}
		one := map[string]any{"key": item.Key, "description": item.Description, "severity": item.Severity}
		if item.ExpectedOutcome != "" {
			one["expectedOutcome"] = item.ExpectedOutcome
		}
		items = append(items, one)
	}
	if len(items) > 0 {
		in["checklistItems"] = items
	}
	return "curl " + ui.ShellWord(d.BaseURL+"/v1/jobs") +
		" \\\n  -H \"Authorization: Bearer $API_KEY\" \\\n  -d " + ui.ShellWord(jsonText(in))
}

func (d Deps) reportFile(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	if j.Status != job.StatusCompleted {
		return ui.Answer{}, domain.NotFound("report")
	}
	file, err := d.reports().File(r.Context(), j.AccountID, j, r.PathValue("format"))
	return ui.Answer{File: (*ui.File)(&file)}, err
}

// retest asks about the ticked items, too: whether each is fixed.
func (d Deps) retest(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	if err := d.Limits.StillAllowed(r.Context(), r.Account, j.Outline); err != nil {
		return ui.Answer{}, err
	}
	if _, err := d.prepare(r, j); err != nil {
		return ui.Answer{}, err
	}
	out, err := d.Commands.Retest(r.Context(), r.Cause(), j.ID)
	return r.Done(out.Position, err, "/dashboard/jobs/"+out.JobID)
}

func (d Deps) cancel(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	out, err := d.Commands.CancelJob(r.Context(), r.Cause(), j.ID, "client")
	return r.Done(out.Position, err, "/dashboard/jobs/"+j.ID)
}

// maxNote bounds a rating's note, in characters.
const maxNote = 2000

func (d Deps) rate(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	rating, err := strconv.Atoi(r.PostFormValue("rating"))
	if err != nil || rating < 1 || rating > 5 {
		return ui.Answer{}, domain.Invalid(domain.Detail{Path: "rating", Message: "must be 1 to 5"})
	}
	note, err := r.Text("note", maxNote)
	if err != nil {
		return ui.Answer{}, err
	}
	at, err := d.Commands.RateJob(r.Context(), r.Cause(), j.ID, rating, note)
	return r.Done(at, err, "/dashboard/jobs/"+j.ID+"#rating")
}

// dispute disputes the verdict on an item.
func (d Deps) dispute(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	form := ui.Form(r, map[string]string{"item": "itemId", "why": "reason"})
	itemID, reason := input.Dispute(form)
	err := form.Problems.Err()
	var at domain.Position
	if err == nil {
		_, at, err = d.Commands.DisputeVerdict(r.Context(), r.Cause(), j.ID, itemID, reason)
	}
	return r.Done(at, err, "/dashboard/jobs/"+j.ID+"#item-"+itemID)
}

// fixed keeps the ticked items for the project's next test.
func (d Deps) fixed(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	at, err := d.prepare(r, j)
	if err == nil && at == (domain.Position{}) {
		return ui.Go("/dashboard/jobs/" + j.ID), nil // none is ticked
	}
	return r.Done(at, err, "/dashboard/projects/"+j.ProjectID+"#prepared")
}

// prepare queues the ticked items; with none the position is zero.
func (d Deps) prepare(r *ui.Request, j jobs.Job) (domain.Position, error) {
	ticked := r.PostForm["item"]
	if j.ProjectID == "" || len(ticked) == 0 || len(ticked) > 50 {
		return domain.Position{}, nil
	}
	fixes, err := admit.AtHead(r.Context(), d.Fresh, func() ([]command.PreparedFix, error) {
		return input.FailedInLastTest(r.Context(), d.Reads, j.AccountID, j.ProjectID, ticked)
	}, admit.Refused)
	if err != nil {
		return domain.Position{}, err
	}
	out, err := d.Commands.PrepareNext(r.Context(), r.Cause(), j.ProjectID, fixes)
	return out.Position, err
}

func jsonText(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // maps of texts always encode
	return strings.TrimSpace(b.String())
}
