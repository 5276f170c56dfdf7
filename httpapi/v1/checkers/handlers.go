package checkers

import (
	"time"

	"humanqa/domain/command"
	"humanqa/httpapi/admit"
	"humanqa/httpapi/evidence"
	"humanqa/projections"
)

// Handlers are those of checkers.
type Handlers struct {
	commands *command.Service
	reads    *projections.Reads
	evidence *evidence.Service
	writer   *admit.Writer
	now      func() time.Time
	baseURL  string
}

func New(
	commands *command.Service, reads *projections.Reads, kept *evidence.Service, writer *admit.Writer, now func() time.Time,
	baseURL string,
) *Handlers {
	return &Handlers{commands: commands, reads: reads, evidence: kept, writer: writer, now: now, baseURL: baseURL}
}
