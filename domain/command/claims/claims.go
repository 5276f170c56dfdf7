// Package claims holds the commands of a checker with a claim on a job. They take and
// release the claim. They add verdicts, findings, pictures, recordings and questions to
// the client. They end with the report. None of them touches a ledger.
package claims

import (
	"time"

	"humanqa/domain/command/settings"
)

// Claims runs the commands. It may be used by many goroutines.
type Claims struct{ Config }

// Config has the dependencies of Claims. All fields are required.
type Config struct {
	*settings.Commands
	Sealer settings.Sealer
	Now    func() time.Time
	// PerChecker bounds the live claims of one checker.
	PerChecker int
}

// New makes Claims.
func New(c Config) *Claims { return &Claims{c} }
