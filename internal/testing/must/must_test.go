package must_test

import (
	"errors"
	"slices"
	"testing"

	"humanqa/internal/testing/must"
)

type ended struct{ said []any }

func (*ended) Helper()             {}
func (e *ended) Fatal(said ...any) { e.said = said }

func TestAnErrorEndsTheTest(t *testing.T) {
	t.Parallel()
	var e ended
	must.NoError(&e, nil)
	if e.said != nil {
		t.Fatalf("nothing went wrong, and the test was told %v", e.said)
	}
	wrong := errors.New("wrong")
	must.NoError(&e, wrong)
	if !slices.Equal(e.said, []any{wrong}) {
		t.Errorf("the test was told %v, want the error", e.said)
	}
}
