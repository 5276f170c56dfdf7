package settings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/oversight"
	"humanqa/domain/repository"
)

// OperatorAct is an act that an operator begins.
type OperatorAct struct {
	PersonID  string // the operator; see oversight.OnCommandLine
	Act       oversight.Act
	Subject   string // a stream, or a read model's name
	AccountID string // the account that it concerns; empty: none
	Detail    string
	Reason    string
}

// refuseWithin bounds the time to record that an act was not done.
const refuseWithin = 10 * time.Second

// Act records an operator's act, and then does it. So a crash in between leaves a record
// without an effect, never an effect without a record. If the act was not done, Act
// records that, too. The position is that of the last event, also beside an error.
func (s *Commands) Act(
	ctx context.Context, cause domain.Cause, a OperatorAct, do func(context.Context, domain.Cause) (domain.Position, error),
) (domain.Position, error) {
	cause.AccountID = a.AccountID
	id, repeat := domain.DeriveID(cause.CommandID, "act").String(), false
	recorded, err := repository.Decide(ctx, s.Oversight, cause, domain.OperatorStream(a.PersonID),
		func(st oversight.State) ([]domain.Event, error) {
			events, err := oversight.DecideAct(st, oversight.Acted{
				ActID: id, PersonID: a.PersonID, Act: a.Act, Subject: a.Subject, AccountID: a.AccountID, Detail: a.Detail, Reason: a.Reason,
			})
			repeat = len(events) == 0
			return events, err
		})
	if err != nil {
		return domain.Position{}, err
	}
	at, err := do(ctx, cause)
	if err == nil || repeat { // an earlier try may have done it
		return recorded.Max(at), err
	}
	problem := "the outcome is unknown: the service's log has the reason"
	if known, ok := errors.AsType[*domain.Error](err); ok {
		problem = known.Message
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refuseWithin)
	defer cancel()
	cause.CommandID = domain.DeriveID(cause.CommandID, "refused")
	at, unsaid := repository.Decide(ctx, s.Oversight, cause, domain.OperatorStream(a.PersonID),
		func(st oversight.State) ([]domain.Event, error) { return oversight.DecideRefused(st, id, problem) })
	if unsaid != nil {
		unsaid = fmt.Errorf("the act stands as if it had been done: %w", unsaid)
	}
	return at, errors.Join(err, unsaid)
}
