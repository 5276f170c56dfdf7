// Package ai writes checklists, analyses reports and reviews pages: the adapters of
// command.AI.
//
// Rules is the default. It knows the job types, the topics of apps, and how to inspect
// a page, and it asks no server. Model asks any server that speaks OpenAI's chat
// completions. If the model fails, Rules finish its work, so that a checklist or a
// report always comes. The answer names its author. After repeated failures a server is
// not asked for a while (breaker.go), so that not every question waits for it.
//
// The text of a model never changes a result. Both adapters compute verdicts, counts,
// severities and the health score from the checker's results. A model's answer must fit
// a JSON schema and its report; otherwise it is not used at all. Texts of checkers,
// clients and pages reach the model only as JSON inside a marked field (see prompt.go).
// Credentials and access instructions never do, nor does the query of a URL.
//
// Rules also fetch pages, through internal/guard. Every hop is checked, and no read
// outlasts its request. The text of a page is cut and cleaned before it enters a
// report.
package ai

import (
	"crypto/x509"

	"github.com/sirupsen/logrus"

	"humanqa/domain/command"
	"humanqa/internal/guard"
)

// Config names the author of texts. The zero value is the rules alone.
type Config struct {
	// Model is the model to ask; empty: none.
	Model string
	// BaseURL is where it answers; empty: DefaultBaseURL.
	BaseURL string
	Key     Secret
	// Log is told when the rules had to finish a model's work. It is required
	// with a model.
	Log logrus.FieldLogger
	// Failed is called with the task each time that happens; Tasks lists them. Nil: no
	// call.
	Failed func(task string)
	// Pages are those that may be reviewed.
	Pages guard.Pages
	// Roots are the certificates that pages are verified with; nil: the system's.
	Roots *x509.CertPool
}

// The tasks of a model.
const (
	checklistWork = "checklist"
	analysisWork  = "analysis"
)

// Tasks lists the tasks that a model is asked to do.
func Tasks() []string { return []string{checklistWork, analysisWork} }

// Secret is a text that no log shows.
type Secret string

const hidden = "[hidden]"

func (Secret) String() string { return hidden }

// GoString hides it from %#v.
func (Secret) GoString() string { return hidden }

// MarshalText hides it from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// New makes the adapter that the configuration asks for.
func New(cfg Config) command.AI {
	rules := &Rules{pages: fetcher{pages: cfg.Pages, roots: cfg.Roots, patience: reviewTime}}
	if cfg.Model == "" {
		return rules
	}
	return newModel(cfg, rules)
}
