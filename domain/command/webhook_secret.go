package command

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"humanqa/domain"
	"humanqa/domain/project"
)

// WebhookSecret opens a project's signing secret, for the dashboard and the
// operator; the API never returns it.
func (s *Service) WebhookSecret(ctx context.Context, projectID string) (string, error) {
	p, err := read(ctx, s.projects, domain.ProjectStream(projectID), func(st project.State) project.State {
		return project.State{AccountID: st.AccountID, Secret: st.Secret}
	})
	switch {
	case err != nil:
		return "", err
	case p.AccountID == "":
		return "", domain.NotFound("project")
	case p.Secret.Sealed == "":
		return "", domain.NotFound("webhook secret").WithHint("set a webhookUrl first")
	}
	plain, err := s.Sealer.Unseal(ctx, p.AccountID, domain.ProjectStream(projectID), p.Secret.Sealed)
	if err != nil {
		return "", fmt.Errorf("unseal the secret of project %s: %w", projectID, err)
	}
	return string(plain), nil
}

// RotateSecret replaces the signing secret of a project's webhook. Unless it is
// immediate, which a leaked one calls for, the old one signs on for a day
// (project.Overlap). A repeat gives the same secret again.
func (s *Service) RotateSecret(ctx context.Context, cause Cause, projectID string, immediate bool) (RotatedSecret, error) {
	next, err := s.newSecret(ctx, cause, projectID)
	if err != nil {
		return RotatedSecret{}, err
	}
	next.UserID, next.KeyID = cause.by()
	wall := s.Now()
	if !immediate {
		until := wall.Add(project.Overlap)
		next.PreviousUntil = &until
	}
	type held struct {
		sealed string
		out    RotatedSecret
	}
	after, written, err := execute(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, after *held) ([]domain.Event, error) {
		if st.AccountID != cause.AccountID {
			return nil, domain.NotFound("project")
		}
		events, err := project.DecideRotate(st, next, wall)
		for _, e := range events {
			st = project.Evolve(st, e)
		}
		*after = held{st.Secret.Sealed, RotatedSecret{PreviousUntil: st.PreviousUntil}}
		if st.SecretRotatedAt != nil {
			after.out.RotatedAt = *st.SecretRotatedAt
		}
		return events, err
	})
	if err != nil {
		return RotatedSecret{}, err
	}
	// What a repeat made is forgotten: the stream has the secret that counts.
	plain, err := s.Sealer.Unseal(ctx, cause.AccountID, domain.ProjectStream(projectID), after.sealed)
	if err != nil {
		return RotatedSecret{}, fmt.Errorf("unseal the secret of project %s: %w", projectID, err)
	}
	after.out.Secret, after.out.Position = string(plain), written.Position
	return after.out, nil
}

// FinishRotation ends the overlap of the last rotation: from now on the new
// secret signs alone. Without an overlap nothing changes.
func (s *Service) FinishRotation(ctx context.Context, cause Cause, projectID string) (RotatedSecret, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return RotatedSecret{}, err
	}
	finished := project.RotationFinished{At: now}
	finished.UserID, finished.KeyID = cause.by()
	wall := s.Now()
	after, written, err := execute(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, after *RotatedSecret) ([]domain.Event, error) {
		if st.AccountID != cause.AccountID {
			return nil, domain.NotFound("project")
		}
		if st.SecretRotatedAt != nil {
			after.RotatedAt = *st.SecretRotatedAt
		}
		return project.DecideFinish(st, finished, wall)
	})
	after.Position = written.Position
	return after, err
}

// ConfirmSecret ends the overlap of a rotation because the receiver confirmed the new
// secret; sealed is that secret as its event holds it. A repeat changes nothing.
func (s *Service) ConfirmSecret(ctx context.Context, cause Cause, projectID, sealed string) (domain.Position, error) {
	wall := s.Now()
	_, written, err := execute(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, _ *none) ([]domain.Event, error) {
		return project.DecideConfirmed(st, sealed, wall)
	})
	return written.Position, err
}

// by says which person, or which API key, stands behind the command; neither
// does where nobody asked.
func (c Cause) by() (userID *string, keyID string) {
	kind, id, _ := strings.Cut(c.Actor, ":")
	switch kind {
	case "person":
		return &id, ""
	case "key":
		return nil, id
	}
	return nil, ""
}

// newSecret makes a signing secret of 256 random bits and seals it. It is
// written as Standard Webhooks libraries expect theirs.
func (s *Service) newSecret(ctx context.Context, cause Cause, projectID string) (project.SecretSet, error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return s.sealSecret(ctx, cause, projectID, []byte("whsec_"+base64.StdEncoding.EncodeToString(b[:])))
}

// sealSecret makes a signing secret fit for an event.
func (s *Service) sealSecret(ctx context.Context, cause Cause, projectID string, secret []byte) (project.SecretSet, error) {
	sealed, err := s.Sealer.Seal(ctx, cause.AccountID, domain.ProjectStream(projectID), secret)
	if err != nil {
		return project.SecretSet{}, fmt.Errorf("seal webhook secret: %w", err)
	}
	known, err := s.Sealer.Fingerprint(ctx, cause.AccountID, "webhook secret", secret)
	if err != nil {
		return project.SecretSet{}, fmt.Errorf("fingerprint webhook secret: %w", err)
	}
	now, err := s.clock(ctx, cause)
	if err != nil {
		return project.SecretSet{}, err
	}
	return project.SecretSet{
		SecretID: domain.DeriveID(cause.CommandID, "secret").String(),
		Sealed:   sealed, Fingerprint: known, At: now,
	}, nil
}
