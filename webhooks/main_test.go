package webhooks_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"humanqa/internal/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(beDispatcher())
	}
	code := pgtest.Main(m)
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "webhooks:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
