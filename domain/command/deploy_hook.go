package command

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
)

// HookToken shows the token of the project's deploy hook, for the dashboard.
func (s *Service) HookToken(ctx context.Context, accountID, projectID string) (string, error) {
	p, err := s.ownedProject(ctx, accountID, projectID)
	if err != nil {
		return "", err
	}
	return s.DeployHookToken(ctx, accountID, projectID, p.HookID)
}

// RotateHook gives the project's deploy hook another token. The old token opens nothing
// any more.
func (s *Service) RotateHook(ctx context.Context, cause Cause, projectID string) (token string, at domain.Position, err error) {
	hookID := domain.DeriveID(cause.CommandID, "hook").String()
	if token, err = s.DeployHookToken(ctx, cause.AccountID, projectID, hookID); err != nil {
		return "", domain.Position{}, err
	}
	rotated := project.HookRotated{HookID: hookID, HookHash: domain.HashToken(token)}
	rotated.UserID, _ = cause.RequestedBy()
	_, at, err = s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		rotated.At = now
		return project.DecideRotateHook(st, rotated)
	})
	return token, at, err
}

// SetHookSignature makes a signature of the scheme required for every call of the
// project's deploy hook, beside its token. An empty scheme requires none.
func (s *Service) SetHookSignature(ctx context.Context, cause Cause, projectID, scheme, secret string) (domain.Position, error) {
	set := project.HookSignatureSet{ChangeID: cause.CommandID.String()}
	set.UserID, _ = cause.RequestedBy()
	if set.Scheme = scheme; scheme != "" {
		var err error
		if set.Sealed, err = s.Sealer.Seal(ctx, cause.AccountID, domain.ProjectStream(projectID), []byte(secret)); err != nil {
			return domain.Position{}, fmt.Errorf("seal the secret of a deploy hook: %w", err)
		}
	}
	_, at, err := s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		set.At = now
		return project.DecideHookSignature(st, set)
	})
	return at, err
}

// HookSecret is the signature that the deploy hook needs, with the platform's secret; an
// empty scheme needs none.
func (s *Service) HookSecret(ctx context.Context, accountID, projectID string) (scheme string, secret []byte, err error) {
	p, err := s.ownedProject(ctx, accountID, projectID)
	if err != nil || p.HookSignature.Scheme == "" {
		return "", nil, err
	}
	secret, err = s.Sealer.Unseal(ctx, accountID, domain.ProjectStream(projectID), p.HookSignature.Sealed)
	return p.HookSignature.Scheme, secret, err
}
