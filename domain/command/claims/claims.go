// Package claims holds the commands of a checker with a claim on a job. They take and
// release the claim. They add verdicts, findings, pictures, recordings and questions to
// the client. They end with the report. None of them touches a ledger.
package claims

import (
	"time"

	"humanqa/domain/command/settings"
)

// Claims runs the commands. It may be used by many goroutines.
type Claims struct {
	*settings.Commands
	sealer     settings.Sealer
	now        func() time.Time
	perChecker int // live claims at most
}

// New makes Claims.
func New(c *settings.Commands, sealer settings.Sealer, now func() time.Time, perChecker int) *Claims {
	return &Claims{c, sealer, now, perChecker}
}
