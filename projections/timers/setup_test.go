package timers

import (
	"os"
	"testing"

	"humanqa/domain/policy"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type world struct {
	*modeltest.World
}

func setup(t *testing.T) *world {
	t.Helper()
	return &world{World: modeltest.New(t, NewProjector(policy.Rules()))}
}
