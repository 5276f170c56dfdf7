package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/session"
	"humanqa/projections/readmodel"
)

// apply folds the batch per job in memory, so that a job is written once
// however many of its events the batch holds.
func apply(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	f := newFold()
	if err := f.load(ctx, tx, schema, batch); err != nil {
		return err
	}
	for _, r := range batch {
		if err := f.fold(r); err != nil {
			return fmt.Errorf("fold %s of %s: %w", r.Type, r.Stream, err)
		}
	}
	return f.write(ctx, tx, schema)
}

func newFold() jobsFold {
	return jobsFold{
		jobs: map[string]*foldedJob{}, sandboxed: map[string]bool{}, counts: map[countRow]*countRow{},
	}
}

// Past is a job as the read model shows it after the folded events only. It is the same
// fold, without a table.
type Past struct {
	id   string
	fold jobsFold
}

// NewPast is a job before its first event. sandbox says that its account is a sandbox:
// older submissions don't have that.
func NewPast(id string, sandbox bool) *Past {
	f := newFold()
	f.allSandboxed = sandbox
	return &Past{id: id, fold: f}
}

// Fold adds the next event of the job's stream.
func (p *Past) Fold(r domain.Recorded) error {
	if err := p.fold.fold(r); err != nil {
		return fmt.Errorf("fold %s of %s: %w", r.Type, r.Stream, err)
	}
	return nil
}

// Job gives the job; NotFound before its submission.
func (p *Past) Job() (Job, error) {
	j := p.fold.jobs[p.id]
	if j == nil {
		return Job{}, domain.NotFound("job")
	}
	return j.row.whole(), nil
}

// Report gives the job's report; NotFound before there is one.
func (p *Past) Report() (Report, error) {
	j := p.fold.jobs[p.id]
	if j == nil || j.row.Status != job.StatusCompleted {
		return Report{}, domain.NotFound("report")
	}
	return j.row.report(), nil
}

// AIReport gives the job's analysis; NotFound before there is one.
func (p *Past) AIReport() (report job.AIReport, err error) {
	j := p.fold.jobs[p.id]
	if j == nil || !j.row.Analysed {
		return report, domain.NotFound("AI report")
	}
	if err := json.Unmarshal([]byte(j.row.AIReport), &report); err != nil {
		return report, fmt.Errorf("decode the AI report of job %s: %w", p.id, err)
	}
	return report, nil
}

// Row is the job's row of the table jobs, as JSON has it; nil before its
// submission.
func (p *Past) Row() any {
	if j := p.fold.jobs[p.id]; j != nil {
		return j.row
	}
	return nil
}

// jobsFold is one batch on its way into the tables.
type jobsFold struct {
	jobs         map[string]*foldedJob
	order        []*foldedJob // in order of first appearance: the writes never depend on map order
	sandboxes    []sandboxRow
	sandboxed    map[string]bool
	allSandboxed bool // all accounts count as sandboxes
	counts       map[countRow]*countRow
	tally        []*countRow
}

type foldedJob struct {
	row            storedRow
	isNew, changed bool
	moved          bool // its state has changed
	reworded       bool // the searched texts have changed
	erased         bool // by this batch
}

// load fetches what the batch builds on: the jobs it changes but did not
// create, and which of the creating accounts are sandboxes.
func (f *jobsFold) load(ctx context.Context, tx *sqlx.Tx, schema string, batch []domain.Recorded) error {
	var changed, creators []string
	created, seen := map[string]bool{}, map[string]bool{}
	for _, r := range batch {
		id := readmodel.JobOf(r)
		switch e := r.Event.(type) {
		case *account.Created:
		case *job.Created:
			created[id] = true
			if !seen[e.AccountID] {
				seen[e.AccountID] = true
				creators = append(creators, e.AccountID)
			}
		default:
			if !created[id] && !seen[id] {
				seen[id] = true
				changed = append(changed, id)
			}
		}
	}
	sandboxes, err := readmodel.Load[sandboxRow](ctx, tx, schema, "job_sandboxes", "account_id", creators)
	if err != nil {
		return err
	}
	for _, s := range sandboxes {
		f.sandboxed[s.AccountID] = true
	}
	rows, err := readmodel.Load[storedRow](ctx, tx, schema, "jobs", "id", changed)
	if err != nil {
		return err
	}
	for _, row := range rows {
		j := &foldedJob{row: row}
		f.jobs[row.ID] = j
		f.order = append(f.order, j)
	}
	return nil
}

// write puts the folded batch into the tables, a statement per table.
func (f *jobsFold) write(ctx context.Context, tx *sqlx.Tx, schema string) error {
	var inserts, updates, erased []storedRow
	var worded, moved []wordsRow // those moved have a new state, but the words of before
	for _, j := range f.order {
		if !j.changed {
			continue
		}
		switch {
		case j.reworded:
			worded = append(worded, j.row.words())
		case j.moved:
			moved = append(moved, wordsRow{JobID: j.row.ID, Status: j.row.Status})
		}
		switch {
		case j.isNew:
			inserts = append(inserts, j.row)
		case j.erased:
			erased = append(erased, j.row)
			fallthrough
		default:
			updates = append(updates, j.row)
		}
	}
	return readmodel.Run(ctx, tx, schema,
		readmodel.Append("job_sandboxes", f.sandboxes),
		readmodel.Append("jobs", inserts),
		readmodel.Update("jobs", "id", updates, changing...),
		readmodel.Update("jobs", "id", erased, erasing...),
		readmodel.Write("write the words of jobs", writeWordsSQL, worded),
		readmodel.Update("job_words", "job_id", moved, "status"),
		readmodel.Write("add to the counts", addCountsSQL, f.tally),
	)
}

// fold applies one event. It skips a job without a row: an operator skipped its
// job.created, or the job never came (a refund of a voided submission).
func (f *jobsFold) fold(r domain.Recorded) error {
	switch e := r.Event.(type) {
	case *account.Created:
		if e.Sandbox {
			id := r.StreamID()
			f.sandboxed[id] = true
			f.sandboxes = append(f.sandboxes, sandboxRow{AccountID: id})
		}
		return nil
	case *job.Created:
		return f.create(readmodel.JobOf(r), e)
	}
	j := f.jobs[readmodel.JobOf(r)]
	if j == nil {
		return nil
	}
	j.changed = true
	switch e := r.Event.(type) {
	case *job.ChecklistWritten:
		j.list(e.Items, e.GeneratedBy)
	case *job.Claimed:
		f.move(j, job.StatusClaimed)
		j.row.CheckerID, j.row.ClaimedAt, j.row.DueAt = e.CheckerID, readmodel.MomentPtr(e.At), readmodel.Moment(e.DueAt)
	case *job.Released:
		j.returned(r, Return{Why: e.Reason})
		f.requeue(j)
	case *job.SlotStarted:
		j.row.DueAt, j.row.QueueDueAt, j.row.LobbyUntil = readmodel.Moment(e.DueAt), readmodel.Moment(e.DueAt), nil
	case *job.SLAMissed:
		j.row.RequeueCount, j.row.LastFailedSLAAt = e.RequeueCount, readmodel.MomentPtr(e.At)
		if e.Requeued {
			j.row.QueueDueAt = readmodel.Moment(e.DueAt)
		}
		f.requeue(j) // where the job is not queued again, job.failed is the next event
	case *job.UntestableReported:
		j.row.UntestableBy = append(j.row.UntestableBy, e.CheckerID)
		j.returned(r, Return{Why: ReturnUntestable, Reason: e.Reason, Note: e.Note})
		f.requeue(j)
	case *job.ItemChecked:
		return j.check(e)
	case *job.FindingAdded:
		j.row.Items = append(j.row.Items, job.ReportItem{Item: e.Item, Status: e.Status, Note: e.Note})
		j.reworded = true
	case *job.FindingEdited:
		j.reworded = true
		return j.edit(e)
	case *job.FindingWithdrawn:
		j.row.Items = slices.DeleteFunc(slices.Clone(j.row.Items), func(item job.ReportItem) bool { return item.ID == e.FindingID })
		j.reworded = true
	case *job.Completed:
		f.complete(j, e)
	case *job.AIReportReady:
		return j.analyse(e)
	case *job.Rated: // the client's last word
		j.row.CheckerRating, j.row.CheckerNote = &e.Rating, e.Note
	case *job.Disputed, *job.DisputeAnswered, *job.DisputeSettled:
		j.row.Disputes = job.Argue(j.row.Disputes, e)
	case *job.DisputeDecided:
		return f.rule(j, e)
	case *job.RecordingAttached:
		j.record(e)
	case *job.QuestionAsked:
		j.row.Questions = append(slices.Clone(j.row.Questions), e.Asked())
	case *job.AnswerGiven:
		j.conclude(e, e.DueAt)
	case *job.QuestionClosed:
		j.conclude(e, e.DueAt)
	case *job.Cancelled:
		f.move(j, job.StatusCancelled)
		j.row.CancelReason, j.row.CancelledAt, j.row.Refunded = e.Reason, readmodel.MomentPtr(e.At), e.Refund
	case *job.Failed:
		f.move(j, job.StatusFailed)
		j.row.FailReason, j.row.FailedAt, j.row.Refunded = e.Reason, readmodel.MomentPtr(e.At), e.Refund
		j.row.FailNote = cmp.Or(e.Note, j.reports())
	case *job.Erased:
		return j.erase(e)
	case *credits.Refunded:
		j.row.Refunded = e.Amount
	}
	return nil
}

func (f *jobsFold) create(id string, e *job.Created) error {
	if f.jobs[id] != nil {
		return fmt.Errorf("job %s was created before", id)
	}
	due := readmodel.Moment(e.CreatedAt).Add(e.SLA())
	j := &foldedJob{isNew: true, changed: true, row: storedRow{jobRow: jobRow{
		ID: id, submission: submission(e.Submission),
		Progress:     Progress{CreatedAt: readmodel.Moment(e.CreatedAt), DueAt: due},
		UntestableBy: pq.StringArray{}, QueueDueAt: due,
	}}}
	j.row.Target.V, j.row.Items, j.row.Recordings, j.row.Returns = e.Target, []job.ReportItem{}, []job.Recording{}, []Return{}
	if e.SessionID != "" {
		closes := readmodel.Moment(e.CreatedAt).Add(session.LobbyTime) // its session has the same beginning
		j.row.LobbyUntil = &closes
	}
	j.row.Questions, j.row.Disputes = []job.Question{}, []job.Dispute{}
	j.row.Sandbox = e.Sandbox || f.allSandboxed || f.sandboxed[e.AccountID]
	j.list(e.Items, e.GeneratedBy)
	j.reworded = true
	f.jobs[id] = j
	f.order = append(f.order, j)
	f.move(j, job.StatusPending)
	return nil
}

func (f *jobsFold) complete(j *foldedJob, e *job.Completed) {
	items := e.Items
	if items == nil {
		items = []job.ReportItem{}
	}
	f.move(j, job.StatusCompleted)
	j.row.Items, j.reworded = items, true
	j.row.ReportID, j.row.OverallStatus, j.row.CompletedAt = e.ReportID, e.OverallStatus, readmodel.MomentPtr(e.At)
	if e.OverallStatus == "pass" {
		f.count(j, job.StatusCompleted).Passed++
	}
	j.row.PassCount, j.row.FailCount, j.row.SkipCount, j.row.Summary = e.PassCount, e.FailCount, e.SkipCount, e.Summary
	j.row.RecordingURL = cmp.Or(e.RecordingURL, firstURL(j.row.Recordings))
}

func (j *foldedJob) analyse(e *job.AIReportReady) error {
	text, err := json.Marshal(e.AIReport)
	j.row.Analysed, j.row.AIReport = true, string(text)
	return err
}

// erase reduces the row to the result of the same events without the key of their texts.
func (j *foldedJob) erase(e *job.Erased) error {
	r := &j.row
	left := domain.WithoutTexts(r.outline().Submission)
	r.submission, r.Target.V = submission(left), left.Target
	r.ErasedAt = readmodel.MomentPtr(e.At)
	r.Items, r.Questions = domain.WithoutTexts(r.Items), domain.WithoutTexts(r.Questions)
	r.Disputes = domain.WithoutTexts(r.Disputes)
	r.Recordings, r.RecordingURL = []job.Recording{}, ""
	r.FailNote, r.Summary, r.CheckerNote = domain.Erased(r.FailNote), domain.Erased(r.Summary), domain.Erased(r.CheckerNote)
	r.Returns = slices.Clone(r.Returns)
	for i := range r.Returns {
		back := &r.Returns[i]
		back.Reason, back.Note = domain.Erased(back.Reason), domain.Erased(back.Note)
	}
	j.erased, j.reworded = true, true
	return r.reanalyse(domain.WithoutTexts)
}

// conclude ends the open question. The job's SLA ends later, by the wait.
func (j *foldedJob) conclude(e domain.Event, dueAt time.Time) {
	j.row.Questions = slices.Clone(j.row.Questions)
	job.Conclude(j.row.Questions, e)
	j.row.DueAt, j.row.QueueDueAt = readmodel.Moment(dueAt), readmodel.Moment(dueAt)
}

// record adds a recording to the job, and to its report. The report links to the first
// recording, unless the checker named another.
func (j *foldedJob) record(e *job.RecordingAttached) {
	j.row.Recordings = append(slices.Clone(j.row.Recordings), e.Recording)
	if j.row.Status == job.StatusCompleted {
		j.row.RecordingURL = cmp.Or(j.row.RecordingURL, e.URL)
	}
}

// returned keeps the end of a claim without a report. Reports that the job is untestable
// are few, and are never dropped.
func (j *foldedJob) returned(r domain.Recorded, back Return) {
	back.Revision, back.At = r.Revision, readmodel.Moment(r.Meta.Time)
	all := append(slices.Clone(j.row.Returns), back)
	if len(all) > maxReturns {
		oldest := slices.IndexFunc(all, func(b Return) bool { return b.Why != ReturnUntestable })
		all = slices.Delete(all, max(oldest, 0), max(oldest, 0)+1)
	}
	j.row.Returns = all
}

// reports gives the notes of the checkers that could not test the job. Older job.failed
// events do not hold them.
func (j *foldedJob) reports() (note string) {
	for _, back := range j.row.Returns {
		if back.Why == ReturnUntestable {
			note = job.FailNote(note, back.Reason, back.Note)
		}
	}
	return note
}

func firstURL(all []job.Recording) string {
	if len(all) == 0 {
		return ""
	}
	return all[0].URL
}

// check puts a verdict on an item of the list; a later one replaces an earlier
// one.
func (j *foldedJob) check(e *job.ItemChecked) error {
	i := slices.IndexFunc(j.row.Items, func(item job.ReportItem) bool { return item.ID == e.ItemID })
	if i < 0 {
		return fmt.Errorf("the job has no item %s", e.ItemID)
	}
	item := &j.row.Items[i]
	j.reworded = j.reworded || item.Note != e.Note
	item.Status, item.Note, item.Reason = e.Status, e.Note, e.Reason
	item.ScreenshotURL, item.MoreScreenshotURLs = e.ScreenshotURL, e.MoreScreenshotURLs
	if e.Severity != "" {
		item.Severity = e.Severity
	}
	return nil
}

func (j *foldedJob) edit(e *job.FindingEdited) error {
	i := slices.IndexFunc(j.row.Items, func(item job.ReportItem) bool { return item.ID == e.Item.ID })
	if i < 0 {
		return fmt.Errorf("the job has no finding %s", e.Item.ID)
	}
	j.row.Items[i] = job.ReportItem{Item: e.Item, Status: e.Status, Note: e.Note}
	return nil
}

// list gives the job its checklist. Only a job with a checklist can be claimed.
func (j *foldedJob) list(items []job.Item, by string) {
	for _, item := range items {
		j.row.Items = append(j.row.Items, job.ReportItem{Item: item, Status: job.ItemPending})
	}
	j.row.GeneratedBy, j.reworded = by, true
	j.row.InQueue = len(j.row.Items) > 0 && !j.row.Type.Automatic() && !j.row.Sandbox
}

// requeue ends the claim, if there is one.
func (f *jobsFold) requeue(j *foldedJob) {
	f.move(j, job.StatusPending)
	j.row.CheckerID, j.row.ClaimedAt, j.row.DueAt = "", nil, j.row.QueueDueAt
}

// move changes the status and both counts.
func (f *jobsFold) move(j *foldedJob, to job.Status) {
	if j.row.Status != "" {
		f.count(j, j.row.Status).Jobs--
	}
	j.row.Status, j.moved = to, true
	f.count(j, to).Jobs++
}

// count gives the batch's change to the count of the job's account, project and status.
func (f *jobsFold) count(j *foldedJob, status job.Status) *countRow {
	key := countRow{AccountID: j.row.AccountID, ProjectID: j.row.ProjectID, Status: status}
	c := f.counts[key]
	if c == nil {
		sum := key
		c = &sum
		f.counts[key] = c
		f.tally = append(f.tally, c)
	}
	return c
}
