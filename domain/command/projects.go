package command

import (
	"context"
	"fmt"

	"humanqa/domain"
	"humanqa/domain/project"
)

// CreateProject opens a project. With a webhook URL a signing secret is made.
func (s *Service) CreateProject(ctx context.Context, cause Cause, in CreateProject) (CreatedProject, error) {
	projectID := domain.DeriveID(cause.CommandID, "project").String()
	token, err := s.hookToken(ctx, cause.AccountID, projectID, "")
	if err != nil {
		return CreatedProject{}, err
	}
	now, err := s.clock(ctx, cause)
	if err != nil {
		return CreatedProject{}, err
	}
	opening := project.CreateCommand{
		AccountID: cause.AccountID, Name: in.Name, Description: in.Description,
		DefaultURL: in.DefaultURL, DefaultJobType: in.DefaultJobType, DefaultSLAMinutes: in.DefaultSLAMinutes,
		WebhookURL: in.WebhookURL, Events: in.Events, HookHash: domain.HashToken(token),
		At: now,
	}
	if in.WebhookURL != "" {
		if opening.Secret, err = s.newSecret(ctx, cause, projectID); err != nil {
			return CreatedProject{}, err
		}
	}
	_, written, err := create(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, _ *none) ([]domain.Event, error) {
		if st.Exists {
			return nil, nil // the id derives from the command: a repeat
		}
		return project.DecideCreate(st, opening)
	})
	if err != nil {
		return CreatedProject{}, err
	}
	return CreatedProject{ProjectID: projectID, Name: in.Name, HookToken: token, Position: written.Position}, nil
}

// hookToken derives the deploy hook's token from the project, and from what
// replaced its first one: a repeat after a crash hands out the token whose hash
// the first try stored, and the pages can show it again.
func (s *Service) hookToken(ctx context.Context, accountID, projectID, hookID string) (string, error) {
	of := projectID
	if hookID != "" {
		of += "\n" + hookID
	}
	secret, err := s.Sealer.Fingerprint(ctx, accountID, "deploy hook", []byte(of))
	if err != nil {
		return "", fmt.Errorf("derive deploy hook token: %w", err)
	}
	return domain.HookTokenPrefix + secret, nil
}

// UpdateProject changes the fields that are given and answers the settings
// after it. A webhook's first URL makes its signing secret.
func (s *Service) UpdateProject(ctx context.Context, cause Cause, projectID string, in UpdateProject) (project.State, domain.Position, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return project.State{}, domain.Position{}, err
	}
	update := project.UpdateCommand{
		Name: in.Name, Description: in.Description, DefaultURL: in.DefaultURL,
		DefaultJobType: in.DefaultJobType, DefaultSLAMinutes: in.DefaultSLAMinutes,
		WebhookURL: in.WebhookURL, Events: in.Events,
		LoopAlertsSnoozedUntil: in.LoopAlertsSnoozedUntil,
		At:                     now,
	}
	if in.WebhookURL != nil && *in.WebhookURL != "" {
		if update.Secret, err = s.newSecret(ctx, cause, projectID); err != nil {
			return project.State{}, domain.Position{}, err
		}
	}
	after, written, err := execute(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, after *project.State) ([]domain.Event, error) {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil, domain.NotFound("project")
		}
		events, err := project.DecideUpdate(st, update)
		*after = st
		for _, e := range events {
			*after = project.Evolve(*after, e)
		}
		return events, err
	})
	return after, written.Position, err
}

// EnableWebhook lets deliveries of a disabled webhook go out again.
func (s *Service) EnableWebhook(ctx context.Context, cause Cause, projectID string) (domain.Position, error) {
	now, err := s.clock(ctx, cause)
	if err != nil {
		return domain.Position{}, err
	}
	_, written, err := execute(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, _ *none) ([]domain.Event, error) {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil, domain.NotFound("project")
		}
		return project.DecideEnable(st, now)
	})
	return written.Position, err
}

// DisableWebhook stops deliveries after one failed for good.
func (s *Service) DisableWebhook(ctx context.Context, cause Cause, projectID, deliveryID, reason string) (domain.Position, error) {
	_, written, err := execute(ctx, s.projects, cause, domain.ProjectStream(projectID), func(st project.State, _ *none) ([]domain.Event, error) {
		return project.DecideDisable(st, deliveryID, reason, s.Now())
	})
	return written.Position, err
}
