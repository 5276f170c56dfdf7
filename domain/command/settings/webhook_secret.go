package settings

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/domain/repository"
)

// WebhookSecret opens a project's signing secret, for the dashboard and the
// operator; the API never returns it.
func (s *Commands) WebhookSecret(ctx context.Context, projectID string) (string, error) {
	p, err := s.Project(ctx, projectID)
	switch {
	case err != nil:
		return "", err
	case p.AccountID == "":
		return "", domain.NotFound("project")
	case p.Secret.Sealed == "":
		return "", domain.NotFound("webhook secret").WithHint("set a webhookUrl first")
	}
	return s.unsealSecret(ctx, projectID, p)
}

func (s *Commands) unsealSecret(ctx context.Context, projectID string, p project.State) (string, error) {
	plain, err := s.sealer.Unseal(ctx, p.AccountID, domain.ProjectStream(projectID), p.Secret.Sealed)
	if err != nil {
		return "", fmt.Errorf("unseal the secret of project %s: %w", projectID, err)
	}
	return string(plain), nil
}

// RotateSecret replaces the signing secret of a project's webhook. The old secret still
// signs for a day (project.Overlap), unless the rotation is immediate, as after a leak. A
// repeat gives the same secret again.
func (s *Commands) RotateSecret(ctx context.Context, cause domain.Cause, projectID string, immediate bool) (RotatedSecret, error) {
	next, err := s.NewSecret(ctx, cause, projectID)
	if err != nil {
		return RotatedSecret{}, err
	}
	next.UserID, next.KeyID = cause.RequestedBy()
	wall := s.now()
	if !immediate {
		until := wall.Add(project.Overlap)
		next.PreviousUntil = &until
	}
	st, at, err := s.OnProject(ctx, cause, projectID, func(st project.State, _ time.Time) ([]domain.Event, error) {
		return project.DecideRotate(st, next, wall)
	})
	if err != nil {
		return RotatedSecret{}, err
	}
	// A repeat drops its own new secret: the secret of the stream counts.
	secret, err := s.unsealSecret(ctx, projectID, st)
	return RotatedSecret{Secret: secret, PreviousUntil: st.PreviousUntil, RotatedAt: st.SecretRotatedAt, Position: at}, err
}

// FinishRotation ends the overlap of the last rotation: from now on the new
// secret signs alone. Without an overlap nothing changes.
func (s *Commands) FinishRotation(ctx context.Context, cause domain.Cause, projectID string) (RotatedSecret, error) {
	wall := s.now()
	st, at, err := s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		finished := project.RotationFinished{At: now}
		finished.UserID, finished.KeyID = cause.RequestedBy()
		return project.DecideFinish(st, finished, wall)
	})
	return RotatedSecret{RotatedAt: st.SecretRotatedAt, Position: at}, err
}

// ConfirmSecret ends the overlap of a rotation because the receiver confirmed the new
// secret; sealed is that secret as its event holds it. A repeat changes nothing.
func (s *Commands) ConfirmSecret(ctx context.Context, cause domain.Cause, projectID, sealed string) (domain.Position, error) {
	wall := s.now()
	return repository.Decide(ctx, s.Projects, cause, domain.ProjectStream(projectID), func(st project.State) ([]domain.Event, error) {
		return project.DecideConfirmed(st, sealed, wall)
	})
}

// NewSecret makes a signing secret of 256 random bits and seals it. It is
// written as Standard Webhooks libraries expect theirs.
func (s *Commands) NewSecret(ctx context.Context, cause domain.Cause, projectID string) (project.SecretSet, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return s.SealSecret(ctx, cause, projectID, []byte("whsec_"+base64.StdEncoding.EncodeToString(b[:])))
}

// SealSecret seals a signing secret for an event.
func (s *Commands) SealSecret(ctx context.Context, cause domain.Cause, projectID string, secret []byte) (project.SecretSet, error) {
	sealed, err := s.sealer.Seal(ctx, cause.AccountID, domain.ProjectStream(projectID), secret)
	if err != nil {
		return project.SecretSet{}, fmt.Errorf("seal webhook secret: %w", err)
	}
	known, err := s.sealer.Fingerprint(ctx, cause.AccountID, "webhook secret", secret)
	if err != nil {
		return project.SecretSet{}, fmt.Errorf("fingerprint webhook secret: %w", err)
	}
	now, err := s.AccountTime(ctx, cause)
	if err != nil {
		return project.SecretSet{}, err
	}
	return project.SecretSet{
		SecretID: domain.DeriveID(cause.CommandID, "secret").String(),
		Sealed:   sealed, Fingerprint: known, At: now,
	}, nil
}

// sealHeaders seals own headers for an event; nil stays nil.
func (s *Commands) sealHeaders(
	ctx context.Context, cause domain.Cause, projectID string, in *project.Headers,
) (*project.HeadersChange, error) {
	if in == nil {
		return nil, nil
	}
	if err := project.CheckHeaders(in.Values).Refusal(); err != nil {
		return nil, err
	}
	change := &project.HeadersChange{Clear: in.Clear}
	for _, given := range slices.Sorted(maps.Keys(in.Values)) {
		name, _ := project.HeaderName(given)
		value := in.Values[given]
		if value == nil {
			change.Remove = append(change.Remove, name)
			continue
		}
		sealed, err := s.sealer.Seal(ctx, cause.AccountID, domain.ProjectStream(projectID), []byte(*value))
		if err != nil {
			return nil, fmt.Errorf("seal a webhook header: %w", err)
		}
		known, err := s.sealer.Fingerprint(ctx, cause.AccountID, "webhook header "+name, []byte(*value))
		if err != nil {
			return nil, fmt.Errorf("fingerprint a webhook header: %w", err)
		}
		change.Set = append(change.Set, project.OwnHeader{Name: name, Sealed: sealed, Fingerprint: known})
	}
	return change, nil
}
