package service

import (
	"context"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

// forgetEvery is how often secrets whose time is over are deleted.
const forgetEvery = 10 * time.Minute

// forgetExpired deletes held secrets whose time is over, such as the token of a submission
// that crashed before its job.
func (c *Core) forgetExpired(ctx context.Context, log logrus.FieldLogger) error {
	for again := true; again; again = backoff.Wait(ctx, forgetEvery) == nil {
		if err := c.Vault.ForgetExpired(ctx); err != nil && ctx.Err() == nil {
			log.WithError(err).Warn("expired secrets stay until the next look")
		}
	}
	return nil
}
