package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/oversight"
)

// OperatorAct is what an operator sets out to do.
type OperatorAct struct {
	PersonID  string // the operator
	Act       oversight.Act
	Subject   string // a stream, or a read model's name
	AccountID string // whom it concerns; empty: no account
	Detail    string
	Reason    string
}

// RecordedAct is an act that was written down.
type RecordedAct struct {
	ID       string
	Repeat   bool // it had been written down before
	Position domain.Position
}

// RecordAct writes down what an operator sets out to do, before it is done: an
// act that crashes has a record without an effect, never the other way round.
// The id of the act derives from the command.
func (s *Service) RecordAct(ctx context.Context, cause Cause, a OperatorAct) (RecordedAct, error) {
	id := domain.DeriveID(cause.CommandID, "act").String()
	cause.AccountID = a.AccountID
	out, written, err := execute(ctx, s.oversight, cause, domain.OperatorStream(a.PersonID), func(st oversight.State, out *RecordedAct) ([]domain.Event, error) {
		events, err := oversight.DecideAct(st, oversight.Acted{
			ActID: id, PersonID: a.PersonID, Act: a.Act, Subject: a.Subject, AccountID: a.AccountID, Detail: a.Detail, Reason: a.Reason,
		})
		out.Repeat = len(events) == 0
		return events, err
	})
	out.ID, out.Position = id, written.Position
	return out, err
}

// RefuseAct writes down that an act was not done.
func (s *Service) RefuseAct(ctx context.Context, cause Cause, personID, actID, problem string) (domain.Position, error) {
	cause.CommandID = domain.DeriveID(cause.CommandID, "refused")
	_, written, err := execute(ctx, s.oversight, cause, domain.OperatorStream(personID), func(st oversight.State, _ *none) ([]domain.Event, error) {
		return oversight.DecideRefused(st, actID, problem)
	})
	return written.Position, err
}
