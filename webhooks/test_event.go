package webhooks

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
)

// TestOf has a test event of the project sent. The delivery's id derives from the
// command's, so a repeat is the same event.
func (l *Log) TestOf(ctx context.Context, accountID, projectID string, commandID uuid.UUID, at time.Time) (uuid.UUID, error) {
	id := domain.DeriveID(commandID, "webhook test of "+projectID)
	return id, HeardOf(l.Test(ctx, accountID, projectID, id, at))
}

// HeardOf changes NotFound, for a project that exists, into its true reason: the
// subscriber is behind.
func HeardOf(err error) error {
	if domain.IsKind(err, domain.KindNotFound) {
		return domain.Unavailable(fmt.Errorf("the webhook subscriber has not read of it yet: %w", err))
	}
	return err
}
