package job_test

import (
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

func ask(token int, id, text string, at int) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideAsk(s, job.Ask{
			CheckerID: "ann", Token: token, QuestionID: id, ItemID: "i1", Kind: "code", Text: text, Wait: job.QuestionWait, At: minute(at),
		})
	}
}

func asked(id string, at, until int) domain.Event {
	return &job.QuestionAsked{
		QuestionID: id, Token: 1, ItemID: "i1", Kind: "code", Text: "The code?", Until: minute(until), At: minute(at),
	}
}

func answer(id, answerID string, at int) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideAnswer(s, job.AnswerGiven{QuestionID: id, AnswerID: answerID, Text: "It is 7.", Sealed: "sealed", At: minute(at)})
	}
}

func answered(id, answerID string, at, due int) domain.Event {
	return &job.AnswerGiven{QuestionID: id, AnswerID: answerID, Text: "It is 7.", Sealed: "sealed", DueAt: minute(due), At: minute(at)}
}

func closed(id, reason string, at, due int) domain.Event {
	return &job.QuestionClosed{QuestionID: id, Reason: reason, DueAt: minute(due), At: minute(at)}
}

// The SLA of created() is 30 minutes; the job is claimed at minute 5.
func TestAQuestionStopsBothClocksUntilItsAnswer(t *testing.T) {
	t.Parallel()
	claimed := []domain.Event{created(), claimedBy("ann", 1)}
	with := func(more ...domain.Event) []domain.Event {
		return append(append([]domain.Event{}, claimed...), more...)
	}
	silence := func(at int) decide {
		return func(s job.State) ([]domain.Event, error) { return job.DecideReleaseSilent(s, minute(at)) }
	}
	miss := func(at int) decide {
		return func(s job.State) ([]domain.Event, error) { return job.DecideMissSLA(s, minute(at)) }
	}
	given(t, claimed...).When(ask(1, "q", "The code?", 10)).Events(asked("q", 10, 40))
	given(t, with(asked("q", 10, 40))...).When(silence(39)).Nothing()
	given(t, with(asked("q", 10, 40))...).When(miss(39)).Nothing()
	due := int(slaEnd(t).Sub(minute(0)) / time.Minute)
	given(t, with(asked("q", 10, 40))...).When(answer("q", "a", 25)).Events(answered("q", "a", 25, due+15))
	given(t, with(asked("q", 10, 40), answered("q", "a", 25, due+15))...).When(miss(due + 14)).Nothing()
	given(t, with(asked("q", 10, 40), answered("q", "a", 25, due+15))...).When(silence(30)).Nothing()
	given(t, with(asked("q", 10, 40), answered("q", "a", 25, due+15))...).When(silence(31)).
		Events(&job.Released{Token: 1, Reason: "silent", At: minute(31)})
}

func slaEnd(t *testing.T) time.Time {
	t.Helper()
	return job.Evolve(job.State{}, created()).DueAt
}

func TestAQuestionWithoutAnAnswerSkipsItsItem(t *testing.T) {
	t.Parallel()
	due := int(slaEnd(t).Sub(minute(0)) / time.Minute)
	expire := func(at int) decide {
		return func(s job.State) ([]domain.Event, error) { return job.DecideExpireQuestion(s, minute(at)) }
	}
	open := []domain.Event{created(), claimedBy("ann", 1), asked("q", 10, 40)}
	given(t, open...).When(expire(39)).Nothing()
	given(t, open...).When(expire(41)).Events(closed("q", job.QuestionUnanswered, 41, due+30), &job.ItemChecked{
		ItemID: "i1", Status: job.ItemSkip, Reason: "no_access", At: minute(41),
		Note: "The checker asked a question about this, and no answer came in time.",
	})
	over := and(open, closed("q", job.QuestionUnanswered, 41, due+30))
	given(t, over...).When(expire(50)).Nothing()
	given(t, over...).When(answer("q", "a", 50)).Conflict("the question was open until " + minute(41).Format(time.RFC3339))
}

// A question that is asked in the last minute leaves time for its answer, and for the rest.
func TestAnAnswerLeavesTheCheckerFiveMinutes(t *testing.T) {
	t.Parallel()
	due := int(slaEnd(t).Sub(minute(0)) / time.Minute)
	open := []domain.Event{created(), claimedBy("ann", 1), asked("q", due-1, due+29)}
	given(t, open...).When(answer("q", "a", due+9)).Events(answered("q", "a", due+9, due+9+5))
	given(t, open...).When(func(s job.State) ([]domain.Event, error) { return job.DecideExpireQuestion(s, minute(due+29)) }).
		Events(closed("q", job.QuestionUnanswered, due+29, due+29+5), &job.ItemChecked{
			ItemID: "i1", Status: job.ItemSkip, Reason: "no_access", At: minute(due + 29),
			Note: "The checker asked a question about this, and no answer came in time.",
		})
	given(t, open...).When(func(s job.State) ([]domain.Event, error) { return job.DecideRelease(s, "ann", 1, minute(due)) }).
		Events(closed("q", job.QuestionClaimEnded, due, due+1), &job.Released{Token: 1, Reason: "checker", At: minute(due)})
}

func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	due := int(slaEnd(t).Sub(minute(0)) / time.Minute)
	open := []domain.Event{created(), claimedBy("ann", 1), asked("q", 10, 40)}
	given(t, open...).When(ask(1, "q", "anything", 11)).Nothing()  // the same command
	given(t, open...).When(ask(1, "r", "The code?", 11)).Nothing() // the same question
	given(t, open...).When(ask(1, "r", "Another?", 11)).Conflict("a question is open already")
	given(t, open...).When(ask(2, "r", "Another?", 11)).Conflict("the claim token is stale")
	given(t, open...).When(answer("x", "a", 11)).NotFound("question")

	done := and(open, answered("q", "a", 25, due+15))
	given(t, done...).When(answer("q", "a", 26)).Nothing() // the same command
	given(t, done...).When(answer("q", "b", 26)).Conflict("the question is answered already")
	given(t, and(done, completed())...).When(answer("q", "b", 26)).Conflict("the job is completed")

	// The second wait may take what the first left of the hour; then there is none.
	second := and(done, asked("r", 26, 56), closed("r", job.QuestionUnanswered, 56, due+45))
	given(t, second...).When(ask(1, "s", "The code?", 60)).Events(asked("s", 60, 75))
	third := and(second, asked("s", 60, 75), closed("s", job.QuestionUnanswered, 75, due+60))
	given(t, third...).When(ask(1, "u", "The code?", 80)).Conflict("the test has waited 60 minutes for answers, the most it may")

	many := []domain.Event{created(), claimedBy("ann", 1)}
	for i := range job.MaxQuestions {
		id := string(rune('a' + i))
		many = append(many, asked(id, 10+i, 40+i), answered(id, "a"+id, 10+i, due))
	}
	given(t, many...).When(ask(1, "z", "The code?", 20)).Conflict("5 questions were asked, the most under one claim")
	given(t, created(), claimedBy("ann", 1)).When(func(s job.State) ([]domain.Event, error) {
		return job.DecideAsk(s, job.Ask{CheckerID: "ann", Token: 1, QuestionID: "q", Kind: "code", Text: "May I?", At: minute(9)})
	}).Conflict("the project takes no questions")
}

func TestTheEndOfAClaimClosesItsQuestion(t *testing.T) {
	t.Parallel()
	due := int(slaEnd(t).Sub(minute(0)) / time.Minute)
	open := []domain.Event{created(), claimedBy("ann", 1), asked("q", 10, 40)}
	left := func(s job.State) ([]domain.Event, error) { return job.DecideRelease(s, "ann", 1, minute(20)) }
	given(t, open...).When(left).Events(closed("q", job.QuestionClaimEnded, 20, due+10), &job.Released{Token: 1, Reason: "checker", At: minute(20)})
	gone := and(open, closed("q", job.QuestionClaimEnded, 20, due+10), released(1))
	given(t, gone...).When(answer("q", "a", 21)).Conflict("the checker that asked has left the job")
	given(t, gone...).When(ask(1, "r", "The code?", 21)).Conflict("the claim has ended")
}

// and is the history with more events behind it.
func and(history []domain.Event, more ...domain.Event) []domain.Event {
	return slices.Concat(history, more)
}
