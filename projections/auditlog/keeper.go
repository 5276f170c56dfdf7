package auditlog

import (
	"context"
	"errors"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

// signEvery is how often a checkpoint is signed while something happens.
const signEvery = time.Minute

// Keeper signs a checkpoint a minute. Any number of processes may keep.
type Keeper struct {
	signer *Signer
	log    logrus.FieldLogger
	every  time.Duration
}

// NewKeeper prepares a keeper; Run makes it sign.
func NewKeeper(signer *Signer, log logrus.FieldLogger) *Keeper {
	return &Keeper{signer: signer, log: log.WithField("component", "audit"), every: signEvery}
}

// Run signs until ctx ends, which gives nil. What fails is tried again.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		_, _, err := k.signer.Sign(ctx)
		switch {
		case err == nil:
		case errors.Is(err, ErrForked):
			k.log.WithError(err).Error("no checkpoint is signed: look with `humanqa audit verify`")
		case ctx.Err() == nil:
			k.log.WithError(err).Warn("no checkpoint could be signed, trying again")
		}
		_ = backoff.Wait(ctx, k.every) // the loop finds out that ctx has ended
	}
	return nil
}
