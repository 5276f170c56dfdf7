package ai

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"
)

// Decisions, "AI report": if AI fails for good, a rule-based report
// finishes it with generatedBy "rules": never 202 forever.
func TestAnAnalysisIsFinishedByTheRulesWhateverTheServerDoes(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 404, 429, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			serveModel(t, refuses(status)).analysesByRules(t, t.Context())
		})
	}
	t.Run("it hangs", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // a fifth of it is the rules', on a busy machine
		defer cancel()
		serveModel(t, hangs).analysesByRules(t, ctx)
	})
}

func (s *modelServer) analysesByRules(t *testing.T, ctx context.Context) {
	t.Helper()
	b := shopReport()
	report, err := s.Analyse(ctx, b)
	if err != nil || report.GeneratedBy != "rules" || !reflect.DeepEqual(report, analysisByRules(b)) {
		t.Errorf("got %+v, %v, want the rules' report", report, err)
	}
	if len(s.seen()) == 0 {
		t.Error("the server was not asked")
	}
}
