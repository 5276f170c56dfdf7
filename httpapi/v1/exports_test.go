package v1

import (
	"errors"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/tabular"
)

// Beside this test's program there is no other. The refusal comes before a byte of the answer.
func TestAFormatWithoutItsProgramIsRefused(t *testing.T) {
	t.Parallel()
	_, err := new(Handlers).TableOf(&wire.Request{}, tabular.Parquet, "jobs", nil, nil)
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Code != domain.CodeUnavailable || !strings.Contains(refused.Hint, "take another one") ||
		!strings.Contains(err.Error(), "humanqa-parquet writes Parquet, and is missing: put it beside humanqa, or run make build") {
		t.Errorf("got %v", err)
	}
}
