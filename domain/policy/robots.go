package policy

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

var (
	// writers wait for a model. One account cannot take all places.
	writers = Pool{Name: "writers", Places: 16, PerAccount: 12, Within: 2 * time.Minute}
	// reviews each wait for a client's page, so they have a pool of their own, and one
	// account has only a few of its places.
	reviews = Pool{Name: "reviews", Places: 16, PerAccount: 4, Within: 30 * time.Second}
)

// robots do the work of the AI, and of a sandbox's robot.
var robots = []Policy{
	{
		Kind:    "player",
		Handles: domain.TypesOf(&job.AnswerGiven{}, &job.QuestionClosed{}),
		react:   watchPlay,
		issue:   Commands.GoOnPlaying,
	},
	{
		Kind:    "checklist",
		Handles: append(endsOfJob(), domain.TypesOf(&job.Created{}, &job.ChecklistWritten{})...),
		Pool:    writers,
		react:   watchChecklist,
		issue:   Commands.WriteChecklist,
	},
	{
		Kind:    "analysis",
		Handles: domain.TypesOf(&job.Completed{}, &job.AIReportReady{}),
		Pool:    writers,
		react:   watchReport,
		issue:   Commands.AnalyseJob,
	},
	{
		Kind:    "review",
		Handles: append(endsOfJob(), domain.TypesOf(&job.Created{})...),
		Pool:    reviews,
		react:   watchReview,
		issue:   Commands.ReviewJob,
	},
}

// watchChecklist has the list written for a job that was submitted without one. Such a
// job sets the timer; its list or its end clears it.
func watchChecklist(r domain.Recorded) []Change {
	e, submitted := r.Event.(*job.Created)
	switch {
	case !submitted:
		return cleared(r.StreamID())
	case e.Type.Automatic() || len(e.Items) > 0:
		return nil
	}
	return atOnce(r, e)
}

// watchReport has every report analysed. A report sets the timer; its analysis clears it.
func watchReport(r domain.Recorded) []Change {
	if _, ok := r.Event.(*job.Completed); ok {
		return setFirst(after(r, r.StreamID(), 0))
	}
	return cleared(r.StreamID())
}

// watchReview has AI reviews done, also those of a sandbox. A requested review sets the
// timer; its end clears it.
func watchReview(r domain.Recorded) []Change {
	e, submitted := r.Event.(*job.Created)
	switch {
	case !submitted:
		return cleared(r.StreamID())
	case !e.Type.Automatic():
		return nil
	}
	return atOnce(r, e)
}

// watchPlay has a robot go on with its work once its question has an answer, or is closed
// without one. A job may have several questions, so the timer may be set again.
func watchPlay(r domain.Recorded) []Change {
	robot := false
	switch e := r.Event.(type) {
	case *job.AnswerGiven:
		robot = e.Robot
	case *job.QuestionClosed:
		robot = e.Robot
	}
	if !robot {
		return nil
	}
	return set(after(r, r.StreamID(), 0))
}

// atOnce sets a timer of a new job for the moment of its submission.
func atOnce(r domain.Recorded, e *job.Created) []Change {
	t := after(r, r.StreamID(), 0)
	t.AccountID = e.AccountID
	return setFirst(t)
}
