package send_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(beDispatcher())
	}
	code := pgtest.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "webhooks/send:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// bundle is one test's service; tests add methods of their own.
type bundle struct{ *hooktest.Bundle }

func setup(t *testing.T) *bundle {
	t.Helper()
	return &bundle{hooktest.Setup(t)}
}
