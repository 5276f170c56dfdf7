package jobpage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/report"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/activity"
	"humanqa/projections/events"
	"humanqa/projections/jobs"
)

// moment is something that happened to a test.
type moment struct {
	At     time.Time
	Text   string
	Detail string
	Said   string // a checker's own words
	By     string // the person, the key or the like that did it; empty: it is not told
	Kind   string // of a fact, which the template "fact" puts into words

	N int // its place among all moments of a replay, from 1

	revision uint64
}

// momentOf puts an event into words; ok is false for an event that means nothing to
// people. st is the test right after it. The words never name the checker.
func momentOf(r domain.Recorded, st job.State) (m moment, ok bool) {
	m.At, m.revision = r.Meta.Time, r.Revision
	switch e := r.Event.(type) {
	case *job.Created:
		m.Text, m.Detail = "Submitted", ui.Credits(e.Price)+" charged"
	case *job.ChecklistWritten:
		m.Text, m.Detail = "Checklist written", ui.Count(len(e.Items), "item")
	case *job.Claimed:
		m.Text = "A checker started"
		if st.Type.Automatic() {
			m.Text = "The review started"
		}
	case *job.Released:
		m.Text, m.Detail = "Back in the queue", releaseWords[e.Reason]
	case *job.ItemChecked:
		item, _ := st.ReportItem(e.ItemID)
		m.Text, m.Detail = verdictWords[e.Status], item.Description
	case *job.FindingAdded:
		m.Text, m.Detail = "Finding added", e.Item.Description
	case *job.FindingEdited:
		m.Text, m.Detail = "Finding edited", e.Item.Description
	case *job.MomentMarked:
		m.Text, m.Detail = "Marked a moment", e.Label
	case *job.QuestionAsked:
		m.Text, m.Detail = "A checker asked", e.Text
	case *job.AnswerGiven:
		m.Text, m.Detail = "Answered", e.Text
		if e.Text == "" {
			m.Detail = "with a secret"
		}
	case *job.SecretShown:
		m.Text, m.Detail = "Checker "+e.Checker+" saw secrets", e.Kind
	case *job.SLAMissed:
		m.Text = "The time limit was missed"
		if e.Requeued {
			m.Detail = "back in the queue"
		}
	case *job.UntestableReported:
		m.Text, m.Detail, m.Said = untestableWords, reasonWords(e.Reason), e.Note
	case *job.Completed:
		m.Text = "Report finished"
		m.Detail = fmt.Sprintf("%d passed, %d failed, %d skipped", e.PassCount, e.FailCount, e.SkipCount)
	case *job.Rated:
		m.Text, m.Detail = "Rated", fmt.Sprintf("%d of 5", e.Rating)
	case *job.Disputed, *job.DisputeAnswered, *job.DisputeDecided:
		m.Text, m.Said = disputeWords(e)
	default: // not for a heartbeat
		m.Text = plainWords[r.Type]
	}
	return m, m.Text != ""
}

func disputeWords(event domain.Event) (text, said string) {
	switch e := event.(type) {
	case *job.Disputed:
		return "A verdict was disputed", e.Reason
	case *job.DisputeAnswered:
		return "The checker answered the dispute", e.Text
	case *job.DisputeDecided:
		return report.DecisionWords(e.Decision), ""
	}
	return "", ""
}

// plainWords are the events that need no more words.
var plainWords = map[string]string{
	"job.finding_withdrawn": "Finding withdrawn", "job.question_closed": "The question got no answer",
	"job.recording_attached": "A recording was added", "job.slot_started": "The session started", "job.ai_report_ready": "Analysis ready",
	"job.cancelled": "Cancelled", "job.failed": "Could not be tested",
}

var verdictWords = map[job.ItemStatus]string{
	job.ItemPass: "Passed", job.ItemFail: "Failed", job.ItemSkip: "Skipped", job.ItemPending: "Open again",
}

// untestableWords say that a checker gave a test up.
const untestableWords = "A checker could not test it"

// releaseWords say why a claim ended without a report.
var releaseWords = map[string]string{
	job.ReleaseChecker: "the checker returned it", job.ReleaseSilent: "the checker was inactive",
	job.ReleaseLeft: "the checker left the session",
}

// reasonWords is a checker's reason; a code of a skip is put into words.
func reasonWords(reason string) string {
	if slices.Contains(job.SkipReasons(), reason) {
		return ui.Skipped(reason)
	}
	return reason
}

// factsShown bounds the facts of a test that its page tells, the newest.
const factsShown = 200

// timeline lists the moments of the test: its announced events, the claims that ended
// without a report, and the other facts with an author.
func (d Deps) timeline(ctx context.Context, j jobs.Job) (told []moment, err error) {
	announced, err := d.Reads.Events.OfJob(ctx, j.AccountID, j.ID)
	if err != nil {
		return nil, err
	}
	var st job.State // the words need only the type
	st.Type = j.Type
	for _, e := range announced {
		if m, ok := momentOf(e.Recorded, st); ok {
			told = append(told, m)
		}
	}
	for _, back := range j.Returns {
		m := moment{At: back.At, Text: "Back in the queue", Detail: releaseWords[back.Why], revision: back.Revision}
		if back.Why == jobs.ReturnUntestable {
			m.Text, m.Detail, m.Said = untestableWords, reasonWords(back.Reason), back.Note
		}
		told = append(told, m)
	}
	facts, err := d.Reads.Activity.List(ctx, j.AccountID, activity.Filter{Stream: domain.JobStream(j.ID), Limit: factsShown})
	if err != nil {
		return nil, err
	}
	authors := wire.List(facts, func(f activity.Titled) string { return f.Author })
	name, err := words.AuthorsOf(ctx, d.Credentials, d.Reads, j.AccountID, authors...)
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		if at := slices.IndexFunc(told, func(m moment) bool { return m.revision == f.Revision }); at >= 0 {
			told[at].By = name(f.Author)
		} else {
			told = append(told, moment{At: f.At, By: name(f.Author), Kind: f.Kind, Detail: f.Detail, revision: f.Revision})
		}
	}
	slices.SortStableFunc(told, func(a, b moment) int { return cmp.Compare(a.revision, b.revision) })
	return told, nil
}

// replayView is the test as it stood after one of its events.
type replayView struct {
	ID, Title string
	Moments   []moment // those around At
	At, Last  int      // counted from 1
	Now       moment
	Previous  int // 0: there is none
	Next      int
	Items     []itemView
	Changed   string // the id of the item that the event is about
	Cursor    string // of the event: the API's ?asOf= takes it for the same answer
	Pass      int
	Fail      int
	Skip      int
	Pending   int
}

// replayList bounds the events that are listed on either side of the one that is shown. A
// few times as many are in memory at most: a test may have thousands.
const replayList = 100

// replay shows the test as it was, event by event.
func (d Deps) replay(r *ui.Request, j jobs.Job) (ui.Answer, error) {
	leave, err := d.PastReads.Enter("reads of the past", j.AccountID)
	if err != nil {
		return ui.Answer{}, err
	}
	defer leave()
	v := replayView{ID: j.ID, Title: j.Title}
	wanted, err := strconv.Atoi(r.FormValue("at"))
	if err != nil || wanted < 1 {
		wanted = 1
	}
	var st job.State
	then := jobs.NewPast(j.ID, j.Sandbox) // the same fold as for ?asOf=
	var wrong error
	err = d.Commands.JobEvents(r.Context(), j.AccountID, j.ID, func(e domain.Recorded) {
		st = job.Evolve(st, e.Event)
		m, told := momentOf(e, st)
		if v.At < wanted && wrong == nil {
			wrong = then.Fold(e)
		}
		if !told {
			return
		}
		v.Last++
		m.N = v.Last
		if v.At < wanted {
			v.At, v.Now, v.Changed, v.Cursor = v.Last, m, "", events.CursorAt(e.Position)
			if checked, ok := e.Event.(*job.ItemChecked); ok {
				v.Changed = checked.ItemID
			}
		}
		if v.Last > v.At+replayList {
			return
		}
		if v.Moments = append(v.Moments, m); len(v.Moments) > 4*replayList {
			v.Moments = v.Moments[:copy(v.Moments, v.Moments[len(v.Moments)-2*replayList-1:])]
		}
	})
	if err := cmp.Or(err, wrong); err != nil {
		return ui.Answer{}, err
	}
	if v.Last == 0 {
		return ui.Answer{}, domain.NotFound("test")
	}
	v.Moments = slices.DeleteFunc(v.Moments, func(m moment) bool { return m.N < v.At-replayList })
	v.Previous = v.At - 1
	if v.At < v.Last {
		v.Next = v.At + 1
	}
	was, err := then.Job()
	if err != nil {
		return ui.Answer{}, err
	}
	gone, err := d.goneOf(r.Context(), j)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Items = itemViews(was.Items, "/dashboard/jobs/"+j.ID, gone)
	v.Pass, v.Fail, v.Skip = job.Counts(was.Items)
	v.Pending = len(was.Items) - v.Pass - v.Fail - v.Skip
	return ui.Show("replay", "How "+j.Title+" went", v, domain.JobStream(j.ID)), nil
}
