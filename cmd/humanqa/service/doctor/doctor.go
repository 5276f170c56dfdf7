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

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/eventstore"
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
	Next   string `json:"next,omitempty"` // the next step; a Wrong finding always has one
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
}

// Examine looks at every part in the order in which a start needs them.
func Examine(ctx context.Context, cfg service.Config, log *logrus.Logger) (found []Finding) {
	e := &examination{cfg: cfg, log: log}
	defer e.close()
	for _, p := range []struct {
		part string
		look func(context.Context) []Finding // empty where the part is not set up
	}{
		{"data", e.data}, {"service", e.service}, {"database", e.database}, {"keys", e.keys}, {"log", e.eventlog}, {"clock", e.clock},
		{"disk", e.disk}, {"evidence", e.evidence}, {"tls", e.tls}, {"webhooks", e.webhooks}, {"mail", e.mail}, {"ai", e.model},
	} {
		limited, cancel := context.WithTimeout(ctx, partLimit)
		for _, f := range p.look(limited) {
			f.Part = p.part
			found = append(found, f)
		}
		cancel()
	}
	return found
}

func (e *examination) close() {
	if e.db != nil {
		_ = e.db.Close() // it was only read
	}
	if e.events != nil {
		_ = e.events.Close()
	}
}

func ok(format string, args ...any) []Finding {
	return []Finding{{State: OK, Detail: fmt.Sprintf(format, args...)}}
}

func note(detail, next string) []Finding {
	return []Finding{{State: Note, Detail: detail, Next: next}}
}

func wrong(err error, next string) []Finding {
	return []Finding{{State: Wrong, Detail: err.Error(), Next: next}}
}

// inGiB is a size for people.
func inGiB(bytes int64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(bytes)/(1<<30)), ".0") + " GiB"
}
