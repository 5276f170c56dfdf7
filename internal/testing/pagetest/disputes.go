package pagetest

import (
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Contested disputes verdicts of a report, each item's in another state: open, answered,
// decided for the checker, and for the client. Further items have no dispute. Reason and
// answer are the words.
func (s *Service) Contested(accountID, checkerID, jobID, words string) {
	s.T.Helper()
	j, err := s.Reads.Jobs.Job(s.T.Context(), accountID, jobID)
	s.Must(err)
	for i, ruling := range []job.Ruling{"", "", job.Stands, job.Overturned}[:min(4, len(j.Items))] {
		d, at, err := s.Commands.DisputeVerdict(s.T.Context(), Client(accountID), jobID, j.Items[i].ID, words)
		s.Shown(at, err)
		if i > 0 {
			claim := command.Claim{CheckerID: checkerID, JobID: jobID}
			_, at, err = s.Commands.AnswerDispute(s.T.Context(), ByChecker(checkerID), claim, d.DisputeID, words)
			s.Shown(at, err)
		}
		if ruling != "" {
			cause := Operator()
			cause.AccountID = accountID
			at, err = s.Commands.RuleDispute(s.T.Context(), cause, jobID, d.DisputeID, ruling)
			s.Shown(at, err)
		}
	}
}
