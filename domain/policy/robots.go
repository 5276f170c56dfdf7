package policy

import (
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

var (
	// writers wait for a model. One account cannot take all places.
	writers = Pool{Name: "writers", Places: 16, PerAccount: 12, Within: 2 * time.Minute, Rest: 5 * time.Minute}
	// reviews each wait for a client's page, so they have a pool of their own, and one
	// account has only a few of its places.
	reviews = Pool{Name: "reviews", Places: 16, PerAccount: 4, Within: 30 * time.Second, Rest: 5 * time.Minute}
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
		// A job that was submitted without a list has it written. Its list or its end clears the timer.
		react: from(func(r domain.Recorded, e *job.Created) []Change {
			return atOnce(r, e, !e.Type.Automatic() && len(e.Items) == 0)
		}),
		issue: Commands.WriteChecklist,
	},
	{
		Kind:    "analysis",
		Handles: domain.TypesOf(&job.Completed{}, &job.AIReportReady{}),
		Pool:    writers,
		// Every report is analysed. Its analysis clears the timer.
		react: from(func(r domain.Recorded, _ *job.Completed) []Change { return setFirst(after(r, r.StreamID(), 0)) }),
		issue: Commands.AnalyseJob,
	},
	{
		Kind:    "review",
		Handles: append(endsOfJob(), domain.TypesOf(&job.Created{})...),
		Pool:    reviews,
		// An AI review is done, also that of a sandbox. Its end clears the timer.
		react: from(func(r domain.Recorded, e *job.Created) []Change { return atOnce(r, e, e.Type.Automatic()) }),
		issue: Commands.ReviewJob,
	},
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

// atOnce sets a timer of a wanted new job for the moment of its submission.
func atOnce(r domain.Recorded, e *job.Created, wanted bool) []Change {
	if !wanted {
		return nil
	}
	t := after(r, r.StreamID(), 0)
	t.AccountID = e.AccountID
	return setFirst(t)
}
