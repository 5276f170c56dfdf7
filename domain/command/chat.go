package command

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
)

// SetChat sets the project's chat at an address, which is sealed, or removes it (the zero
// Chat without an address). Without an address only the choice of reports changes.
func (s *Service) SetChat(ctx context.Context, cause Cause, projectID, address string, chat project.Chat) (domain.Position, error) {
	if address != "" {
		var err error
		if chat.Sealed, err = s.Sealer.Seal(ctx, cause.AccountID, domain.ProjectStream(projectID), []byte(address)); err != nil {
			return domain.Position{}, fmt.Errorf("seal the address of a chat: %w", err)
		}
	}
	_, at, err := s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		return project.DecideChat(st, project.ChatSet{Chat: chat, ChangeID: cause.CommandID.String(), At: now})
	})
	return at, err
}

// ChatAddress is the address of the project's chat, and the change that set it; empty: there
// is no chat.
func (s *Service) ChatAddress(ctx context.Context, accountID, projectID string) (address, changeID string, err error) {
	p, err := s.ownedProject(ctx, accountID, projectID)
	if err != nil || p.Chat.Sealed == "" {
		return "", "", err
	}
	plain, err := s.Sealer.Unseal(ctx, accountID, domain.ProjectStream(projectID), p.Chat.Sealed)
	return string(plain), p.ChatID, err
}

// EndChat ends the chat that the change has set: its address takes nothing any more, and is
// forgotten. A chat that was changed since is left alone.
func (s *Service) EndChat(ctx context.Context, accountID, projectID, changeID, reason string) error {
	cause := Cause{CommandID: domain.NewCommandID(), Actor: "webhooks", AccountID: accountID}
	_, _, err := s.OnProject(ctx, cause, projectID, func(st project.State, now time.Time) ([]domain.Event, error) {
		if st.ChatID != changeID {
			return nil, nil
		}
		ended := project.Chat{Address: st.Chat.Address, Ended: reason}
		return project.DecideChat(st, project.ChatSet{Chat: ended, ChangeID: cause.CommandID.String(), At: now})
	})
	return err
}
