package queue

import (
	"os"
	"testing"

	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
