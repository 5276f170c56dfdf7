package command

import (
	"context"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/person"
)

// InvitePerson makes a person who holds the grant. How they come in is not
// decided here (internal/credential).
//
// A checker is bound first and the person made last: a crash in between leaves
// a checker bound to somebody who never comes, and the same command goes on
// from there.
func (s *Service) InvitePerson(ctx context.Context, cause Cause, grant person.Grant) (personID string, at domain.Position, err error) {
	personID = domain.DeriveID(cause.CommandID, "person").String()
	if err := s.prepareGrant(ctx, cause, personID, grant); err != nil {
		return "", domain.Position{}, err
	}
	at, err = s.onPerson(ctx, cause, personID, grant.AccountID, func(st person.State) ([]domain.Event, error) {
		return person.DecideInvite(st, grant)
	})
	return personID, at, err
}

// JoinPerson says that the person took the invitation up.
func (s *Service) JoinPerson(ctx context.Context, cause Cause, personID string) (domain.Position, error) {
	return s.onPerson(ctx, cause, personID, "", person.DecideJoin)
}

// GrantRole gives the person a role; one of an account takes the place of the
// one they had there. Jobs of that account are theirs to test no longer, those
// they have claimed included.
func (s *Service) GrantRole(ctx context.Context, cause Cause, personID string, grant person.Grant) (domain.Position, error) {
	var refusal error
	if _, err := read(ctx, s.people, domain.PersonStream(personID), func(st person.State) none {
		_, refusal = person.DecideGrant(st, grant)
		return none{}
	}); err != nil {
		return domain.Position{}, err
	}
	if refusal != nil {
		return domain.Position{}, refusal // a checker must not be bound for a grant that cannot come
	}
	if err := s.prepareGrant(ctx, cause, personID, grant); err != nil {
		return domain.Position{}, err
	}
	return s.onPerson(ctx, cause, personID, grant.AccountID, func(st person.State) ([]domain.Event, error) {
		return person.DecideGrant(st, grant)
	})
}

// RevokeRole takes a role back.
func (s *Service) RevokeRole(ctx context.Context, cause Cause, personID string, grant person.Grant) (domain.Position, error) {
	return s.onPerson(ctx, cause, personID, grant.AccountID, func(st person.State) ([]domain.Event, error) {
		return person.DecideRevoke(st, grant)
	})
}

// DisablePerson ends all the person may do, for good.
func (s *Service) DisablePerson(ctx context.Context, cause Cause, personID, reason string) (domain.Position, error) {
	return s.onPerson(ctx, cause, personID, "", func(st person.State) ([]domain.Event, error) {
		return person.DecideDisable(st, reason)
	})
}

// Grants gives what the log says now that the person may do; domain.KindNotFound where
// they are disabled, or not there.
func (s *Service) Grants(ctx context.Context, personID string) ([]person.Grant, error) {
	now, err := read(ctx, s.people, domain.PersonStream(personID), func(st person.State) person.State { return st })
	if err == nil && (!now.Exists || now.Disabled) {
		err = domain.NotFound("person")
	}
	return now.Grants, err
}

// prepareGrant makes sure that what the grant names is there, and binds the
// checker to the person.
func (s *Service) prepareGrant(ctx context.Context, cause Cause, personID string, grant person.Grant) error {
	if grant.AccountID != "" {
		if err := s.accountExists(ctx, grant.AccountID); err != nil {
			return err
		}
	}
	if grant.Role != person.Checker || grant.CheckerID == "" {
		return nil
	}
	_, _, err := execute(ctx, s.checkers, cause, domain.CheckerStream(grant.CheckerID), func(st checker.State, _ *none) ([]domain.Event, error) {
		return checker.DecideBind(st, personID)
	})
	return err
}

func (s *Service) onPerson(ctx context.Context, cause Cause, personID, accountID string, decide func(person.State) ([]domain.Event, error)) (domain.Position, error) {
	cause.AccountID = accountID
	_, written, err := execute(ctx, s.people, cause, domain.PersonStream(personID),
		func(st person.State, _ *none) ([]domain.Event, error) { return decide(st) })
	return written.Position, err
}
