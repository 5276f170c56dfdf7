package apitest

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/testing/logtest"
	"humanqa/projections/auditlog"
)

// Words are all lines that were logged.
type Words struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (w *Words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *Words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

// Logger keeps each line here.
func (w *Words) Logger() *logrus.Logger {
	logger := logrus.New()
	logger.SetOutput(w)
	logger.SetLevel(logrus.DebugLevel)
	return logger
}

// tell shows the warnings and errors since a failed test began: an answer does not say why
// the service was not available.
func (w *Words) tell(t testing.TB, before int) {
	if !t.Failed() {
		return
	}
	for line := range strings.Lines(w.String()[before:]) {
		if strings.Contains(line, "level=warning") || strings.Contains(line, "level=error") {
			t.Log(line)
		}
	}
}

// ownLog knows of the accounts' own streams, in memory.
type ownLog struct{ log *logtest.Memory }

func (o ownLog) Events(_ context.Context, accountID string, span auditlog.Span, each func([]any) error) error {
	for _, e := range o.log.Stream(domain.AccountStream(accountID)) {
		if holds, _ := span.Holds(e.Position, e.Meta.Time); !holds {
			continue
		}
		row := []any{int64(e.Position.Commit), int64(e.Position.Prepare), e.Stream, int64(e.Revision), e.ID.String(), e.Type, e.Meta.Time, "operator", "", "", json.RawMessage(`{"sealed":"[sealed]"}`)}
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

func (o ownLog) Proof(_ context.Context, accountID string, id uuid.UUID) (auditlog.Proof, error) {
	for _, e := range o.log.Stream(domain.AccountStream(accountID)) {
		if e.ID == id {
			return auditlog.Proof{Event: auditlog.BoundEvent{ID: id, Stream: e.Stream}, Path: []string{}, Checkpoint: "note"}, nil
		}
	}
	return auditlog.Proof{}, domain.NotFound("event " + id.String())
}
