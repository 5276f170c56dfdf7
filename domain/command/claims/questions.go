package claims

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/repository"
)

// AnswerQuestion is the client's answer. Secret is shown to the current claimant only;
// it may be empty.
type AnswerQuestion struct {
	QuestionID string
	Text       string
	Secret     string
}

// AskQuestion asks the client under a live claim. The same text again, while the question
// is open, answers the same question. The claim, the id, the wait and the time are filled in here.
func (s *Claims) AskQuestion(ctx context.Context, cause domain.Cause, claim Claim, ask job.Ask) (job.Question, domain.Position, error) {
	wait, err := s.QuestionWait(ctx, claim.JobID)
	if err != nil {
		return job.Question{}, domain.Position{}, err
	}
	ask.CheckerID, ask.Token, ask.QuestionID = claim.CheckerID, claim.Token, domain.DeriveID(cause.CommandID, "question").String()
	ask.Wait, ask.At = wait, s.now()
	st, at, err := s.Run(ctx, cause, claim, func(st job.State) ([]domain.Event, error) { return job.DecideAsk(st, ask) })
	return st.Asked(ask.QuestionID), at, err
}

// QuestionWait is how long a question of the job may wait: its project may set it.
func (s *Claims) QuestionWait(ctx context.Context, jobID string) (time.Duration, error) {
	target, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) string { return st.ProjectID })
	if err != nil || target == "" {
		return job.QuestionWait, err
	}
	p, err := s.Project(ctx, target)
	if err != nil || p.QuestionMinutes == nil {
		return job.QuestionWait, err
	}
	return time.Duration(*p.QuestionMinutes) * time.Minute, nil
}

// AnswerQuestion answers an open question of the account's job. Both clocks of the job
// run again.
func (s *Claims) AnswerQuestion(
	ctx context.Context, cause domain.Cause, jobID string, in AnswerQuestion,
) (job.Question, domain.Position, error) {
	sealed := ""
	if in.Secret != "" {
		var err error
		if sealed, err = s.sealer.Seal(ctx, cause.AccountID, domain.JobStream(jobID), []byte(in.Secret)); err != nil {
			return job.Question{}, domain.Position{}, fmt.Errorf("seal the answer to question %s: %w", in.QuestionID, err)
		}
	}
	st, at, err := s.OnJob(ctx, cause, jobID, func(st job.State, now time.Time) ([]domain.Event, error) {
		return job.DecideAnswer(st, job.AnswerGiven{
			QuestionID: in.QuestionID, AnswerID: domain.DeriveID(cause.CommandID, "answer").String(),
			Text: in.Text, Sealed: sealed, At: now,
		})
	})
	q, _ := st.Question(in.QuestionID)
	return q, at, err
}

// ToldQuestion is a question as its claimant sees it: with the secret of its answer.
type ToldQuestion struct {
	job.Question
	Secret string
}
