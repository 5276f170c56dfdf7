package settings

import (
	"cmp"
	"context"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/person"
	"humanqa/domain/repository"
)

// InvitePerson makes a person with that role. Package internal/credential lets the person
// sign in.
//
// The command binds the checker first and makes the person last. A crash in between
// leaves a checker bound to a missing person, and the same command continues from
// there.
func (s *Commands) InvitePerson(
	ctx context.Context, cause domain.Cause, grant person.Grant,
) (personID string, at domain.Position, err error) {
	personID = domain.DeriveID(cause.CommandID, "person").String()
	if err := s.prepareGrant(ctx, cause, personID, grant); err != nil {
		return "", domain.Position{}, err
	}
	at, err = s.onPerson(ctx, cause, personID, grant.AccountID, func(st person.State) ([]domain.Event, error) {
		return person.DecideInvite(st, grant)
	})
	return personID, at, err
}

// JoinPerson records that the person accepted the invitation.
func (s *Commands) JoinPerson(ctx context.Context, cause domain.Cause, personID string) (domain.Position, error) {
	return s.onPerson(ctx, cause, personID, "", person.DecideJoin)
}

// GrantRole gives the person a role. A role of an account replaces the person's earlier
// role there. The person may no longer test jobs of that account, not even claimed ones.
func (s *Commands) GrantRole(ctx context.Context, cause domain.Cause, personID string, grant person.Grant) (domain.Position, error) {
	refusal, err := repository.Read(ctx, s.People, domain.PersonStream(personID), func(st person.State) error {
		_, err := person.DecideGrant(st, grant)
		return err
	})
	if err = cmp.Or(err, refusal); err != nil {
		return domain.Position{}, err // no checker is bound for a grant that cannot succeed
	}
	if err := s.prepareGrant(ctx, cause, personID, grant); err != nil {
		return domain.Position{}, err
	}
	return s.onPerson(ctx, cause, personID, grant.AccountID, func(st person.State) ([]domain.Event, error) {
		return person.DecideGrant(st, grant)
	})
}

// RevokeRole takes a role back.
func (s *Commands) RevokeRole(ctx context.Context, cause domain.Cause, personID string, grant person.Grant) (domain.Position, error) {
	return s.onPerson(ctx, cause, personID, grant.AccountID, func(st person.State) ([]domain.Event, error) {
		return person.DecideRevoke(st, grant)
	})
}

// DisablePerson ends all rights of the person, for good.
func (s *Commands) DisablePerson(ctx context.Context, cause domain.Cause, personID, reason string) (domain.Position, error) {
	return s.onPerson(ctx, cause, personID, "", func(st person.State) ([]domain.Event, error) {
		return person.DecideDisable(st, reason)
	})
}

// Grants gives the person's roles as the log has them now; domain.KindNotFound for a
// disabled or missing person.
func (s *Commands) Grants(ctx context.Context, personID string) ([]person.Grant, error) {
	now, err := repository.Read(ctx, s.People, domain.PersonStream(personID), func(st person.State) person.State { return st })
	if err == nil && (!now.Exists || now.Disabled) {
		err = domain.NotFound("person")
	}
	return now.Grants, err
}

// prepareGrant checks that the account of the grant exists, and binds its checker to the
// person.
func (s *Commands) prepareGrant(ctx context.Context, cause domain.Cause, personID string, grant person.Grant) error {
	if grant.AccountID != "" {
		if _, err := s.ExistingAccount(ctx, grant.AccountID); err != nil {
			return err
		}
	}
	if grant.Role != person.Checker || grant.CheckerID == "" {
		return nil
	}
	stream := domain.CheckerStream(grant.CheckerID)
	_, err := repository.Decide(ctx, s.Checkers, cause, stream, func(st checker.State) ([]domain.Event, error) {
		return checker.DecideBind(st, personID)
	})
	return err
}

func (s *Commands) onPerson(
	ctx context.Context, cause domain.Cause, personID, accountID string, decide func(person.State) ([]domain.Event, error),
) (domain.Position, error) {
	cause.AccountID = accountID
	return repository.Decide(ctx, s.People, cause, domain.PersonStream(personID), decide)
}
