package claims

import (
	"context"
	"fmt"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
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
	ask.Wait, ask.At = wait, s.Now()
	return Run(ctx, s, cause, claim, func(st job.State, q *job.Question) ([]domain.Event, error) {
		events, err := job.DecideAsk(st, ask)
		if err != nil {
			return nil, err
		}
		if asked, ok := domain.Last[*job.QuestionAsked](events); ok {
			*q = asked.Asked()
		}
		if len(events) == 0 { // a repeat
			at := slices.IndexFunc(st.Questions, func(known job.Question) bool { return known.ID == ask.QuestionID })
			*q = st.Questions[max(at, 0)]
			if open, waits := st.OpenQuestion(); at < 0 && waits {
				*q = open
			}
		}
		return events, nil
	})
}

// QuestionWait is how long a question of the job may wait: its project may set it.
func (s *Claims) QuestionWait(ctx context.Context, jobID string) (time.Duration, error) {
	target, err := repository.Read(ctx, s.Jobs, domain.JobStream(jobID), func(st job.State) string { return st.ProjectID })
	if err != nil || target == "" {
		return job.QuestionWait, err
	}
	stream := domain.ProjectStream(target)
	minutes, err := repository.Read(ctx, s.Projects, stream, func(st project.State) *int { return st.QuestionMinutes })
	if err != nil || minutes == nil {
		return job.QuestionWait, err
	}
	return time.Duration(*minutes) * time.Minute, nil
}

// AnswerQuestion answers an open question of the account's job. Both clocks of the job
// run again.
func (s *Claims) AnswerQuestion(
	ctx context.Context, cause domain.Cause, jobID string, in AnswerQuestion,
) (job.Question, domain.Position, error) {
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return job.Question{}, domain.Position{}, err
	}
	stream := domain.JobStream(jobID)
	sealed := ""
	if in.Secret != "" {
		if sealed, err = s.Sealer.Seal(ctx, cause.AccountID, stream, []byte(in.Secret)); err != nil {
			return job.Question{}, domain.Position{}, fmt.Errorf("seal the answer to question %s: %w", in.QuestionID, err)
		}
	}
	return repository.Execute(ctx, s.Jobs, cause, stream, func(st job.State, q *job.Question) ([]domain.Event, error) {
		if st.AccountID != cause.AccountID {
			return nil, domain.NotFound("job")
		}
		events, err := job.DecideAnswer(st, job.Answer{
			QuestionID: in.QuestionID, AnswerID: domain.DeriveID(cause.CommandID, "answer").String(),
			Text: in.Text, Sealed: sealed, At: now,
		})
		if err != nil {
			return nil, err
		}
		all := slices.Clone(st.Questions)
		for _, e := range events {
			job.Conclude(all, e)
		}
		*q = all[slices.IndexFunc(all, func(known job.Question) bool { return known.ID == in.QuestionID })]
		return events, nil
	})
}

// ToldQuestion is a question as its claimant sees it: with the secret of its answer.
type ToldQuestion struct {
	job.Question
	Secret string
}

// toldQuestions opens the secrets of the answers for the claimant.
func (s *Claims) toldQuestions(ctx context.Context, jobID string, st job.State) ([]ToldQuestion, error) {
	var told []ToldQuestion
	for _, q := range st.Questions {
		t := ToldQuestion{Question: q}
		if q.Sealed != "" {
			plain, err := s.Sealer.Unseal(ctx, st.AccountID, domain.JobStream(jobID), q.Sealed)
			if err != nil {
				return nil, fmt.Errorf("unseal the answer to question %s: %w", q.ID, err)
			}
			t.Secret = string(plain)
		}
		told = append(told, t)
	}
	return told, nil
}
