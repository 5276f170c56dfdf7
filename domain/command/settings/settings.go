// Package settings holds the commands for settings: accounts and their keys, checkers,
// people, pools, projects with their webhooks' secrets, and the record of operators'
// acts. None of them touches a job or a ledger.
package settings

import (
	"context"
	"time"

	"humanqa/domain/command/streams"
)

// Sealer keeps secrets: package internal/vault. A sealed text opens only for
// the account and the stream it was sealed for.
type Sealer interface {
	Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
	Fingerprint(ctx context.Context, accountID, use string, secret []byte) (string, error)
}

// Commands runs the commands. It may be used by many goroutines.
type Commands struct {
	*streams.Streams
	sealer Sealer
	now    func() time.Time
}

// New makes Commands. now is the service's clock.
func New(all *streams.Streams, sealer Sealer, now func() time.Time) *Commands {
	return &Commands{all, sealer, now}
}
