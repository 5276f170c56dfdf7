package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

// TestOf has a test event of the project sent. The command's id makes the delivery's: a
// repeat is the same event.
func (l *Log) TestOf(ctx context.Context, accountID, projectID string, commandID uuid.UUID, at time.Time) (uuid.UUID, error) {
	id := domain.DeriveID(commandID, "webhook test of "+projectID)
	return id, HeardOf(l.Test(ctx, accountID, projectID, id, at))
}

// HeardOf turns the log's word that there is no such project, of a project that is
// there, into what it means: the subscriber is behind.
func HeardOf(err error) error {
	if domain.IsKind(err, domain.KindNotFound) {
		return domain.Unavailable(fmt.Errorf("the webhook subscriber has not read of it yet: %w", err))
	}
	return err
}
