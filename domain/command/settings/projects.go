package settings

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/domain/repository"
)

// CreateProject opens a project. With a webhook URL a signing secret is made.
func (s *Commands) CreateProject(ctx context.Context, cause domain.Cause, in CreateProject) (CreatedProject, error) {
	projectID := domain.DeriveID(cause.CommandID, "project").String()
	token, err := s.DeployHookToken(ctx, cause.AccountID, projectID, "")
	if err != nil {
		return CreatedProject{}, err
	}
	opening := project.CreateCommand{Opening: in, AccountID: cause.AccountID, HookHash: domain.HashToken(token)}
	if opening.Sealed, err = s.sealHeaders(ctx, cause, projectID, in.Headers); err != nil {
		return CreatedProject{}, err
	}
	opening.UserID, opening.KeyID = cause.RequestedBy()
	if in.WebhookURL != "" {
		if opening.Secret, err = s.NewSecret(ctx, cause, projectID); err != nil {
			return CreatedProject{}, err
		}
	}
	_, written, err := Execute(ctx, s, s.Projects, cause, domain.ProjectStream(projectID),
		func(st project.State, now time.Time) ([]domain.Event, error) {
			if st.Exists {
				return nil, nil // the id derives from the command: a repeat
			}
			opening.At = now
			return project.DecideCreate(st, opening)
		}, func(project.State) struct{} { return struct{}{} })
	if err != nil {
		return CreatedProject{}, err
	}
	return CreatedProject{ProjectID: projectID, Name: in.Name, HookToken: token, Position: written}, nil
}

// DeployHookToken derives the deploy hook's token from the project and from the id of
// its replacement. So a repeat after a crash gives the token that the first try hashed,
// and the pages can show it again.
func (s *Commands) DeployHookToken(ctx context.Context, accountID, projectID, hookID string) (string, error) {
	of := projectID
	if hookID != "" {
		of += "\n" + hookID
	}
	secret, err := s.sealer.Fingerprint(ctx, accountID, "deploy hook", []byte(of))
	if err != nil {
		return "", fmt.Errorf("derive deploy hook token: %w", err)
	}
	return domain.HookTokenPrefix + secret, nil
}

// UpdateProject changes the fields that are given and answers the settings
// after it. A webhook's first URL makes its signing secret.
func (s *Commands) UpdateProject(
	ctx context.Context, cause domain.Cause, projectID string, in UpdateProject,
) (project.State, domain.Position, error) {
	update := project.UpdateCommand{Changes: in.Changes}
	var err error
	if update.Headers, err = s.sealHeaders(ctx, cause, projectID, in.Headers); err != nil {
		return project.State{}, domain.Position{}, err
	}
	update.UserID, update.KeyID = cause.RequestedBy()
	if in.WebhookURL != nil && *in.WebhookURL != "" {
		if update.Secret, err = s.NewSecret(ctx, cause, projectID); err != nil {
			return project.State{}, domain.Position{}, err
		}
	}
	return s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		update.At = now
		return project.DecideUpdate(st, update)
	})
}

// EnableWebhook lets deliveries of a disabled webhook go out again.
func (s *Commands) EnableWebhook(ctx context.Context, cause domain.Cause, projectID string) (domain.Position, error) {
	_, at, err := s.OnProject(ctx, cause, projectID, project.DecideEnable)
	return at, err
}

// OnProject is OnJob for a project.
func (s *Commands) OnProject(
	ctx context.Context, cause domain.Cause, projectID string, decide func(project.State, time.Time) ([]domain.Event, error),
) (project.State, domain.Position, error) {
	own := func(st project.State, now time.Time) ([]domain.Event, error) {
		if !st.Exists || st.AccountID != cause.AccountID {
			return nil, domain.NotFound("project")
		}
		return decide(st, now)
	}
	return Execute(ctx, s, s.Projects, cause, domain.ProjectStream(projectID), own, func(st project.State) project.State { return st })
}

// DisableWebhook stops deliveries after one failed for good.
func (s *Commands) DisableWebhook(ctx context.Context, cause domain.Cause, projectID, deliveryID, reason string) (domain.Position, error) {
	return repository.Decide(ctx, s.Projects, cause, domain.ProjectStream(projectID), func(st project.State) ([]domain.Event, error) {
		return project.DecideDisable(st, deliveryID, reason, s.now())
	})
}
