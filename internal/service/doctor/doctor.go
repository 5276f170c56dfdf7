// Package doctor looks at an installation and says what is wrong with it, each with the
// next step. It looks from outside, by the same settings as the service: it starts
// nothing, migrates nothing, and works while the service runs and while it is stopped.
//
// Evidence gets one file, which is removed at once: only a write shows that writes work.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/eventstore"
	"humanqa/internal/service"
	"humanqa/internal/service/logging"
)

// State is how a part is.
type State string

// A Note needs no work, or waits for the first start.
const (
	OK    State = "ok"
	Note  State = "note"
	Wrong State = "wrong"
)

// Finding is one part that was looked at.
type Finding struct {
	Part   string `json:"part"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Next   string `json:"next,omitempty"` // the next step; of what is wrong always
}

// Line is the finding for a terminal.
func (f Finding) Line() string {
	line := fmt.Sprintf("%-5s  %-9s  %s", f.State, f.Part, logging.OneLine(f.Detail))
	if f.Next != "" {
		line += ": " + f.Next
	}
	return line
}

// partLimit bounds the look at one part: a server that does not answer is a finding.
const partLimit = 10 * time.Second

// examination is the look at one installation.
type examination struct {
	cfg     service.Config
	log     *logrus.Logger
	running int                // process id of the service on this data directory; 0: none
	db      *sqlx.DB           // nil where there is none, or it does not answer
	events  *eventstore.Client // the same of the log
	found   []Finding
}

// Examine looks at every part in the order in which a start needs them.
func Examine(ctx context.Context, cfg service.Config, log *logrus.Logger) []Finding {
	e := &examination{cfg: cfg, log: log}
	defer e.close()
	for _, look := range []func(context.Context){
		e.data, e.service, e.database, e.eventlog, e.clock, e.disk, e.evidence, e.tls, e.webhooks, e.mail, e.model,
	} {
		limited, cancel := context.WithTimeout(ctx, partLimit)
		look(limited)
		cancel()
	}
	return e.found
}

func (e *examination) close() {
	if e.db != nil {
		_ = e.db.Close() // it was only read
	}
	if e.events != nil {
		_ = e.events.Close()
	}
}

func (e *examination) ok(part, format string, args ...any) {
	e.found = append(e.found, Finding{part, OK, fmt.Sprintf(format, args...), ""})
}

func (e *examination) note(part, detail, next string) {
	e.found = append(e.found, Finding{part, Note, detail, next})
}

func (e *examination) wrong(part string, err error, next string) {
	e.found = append(e.found, Finding{part, Wrong, err.Error(), next})
}

// inGiB is a size for people.
func inGiB(bytes int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<30)), ".0") + " GiB"
}
