package node_test

import (
	"os"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/internal/testing/conformance"
	"humanqa/internal/testing/must"
)

func TestNodeConforms(t *testing.T) {
	n := onSocket(t)
	conformance.Run(t, func() *esdb.Configuration { return socketConfig(n.Addr()) })
}

// serverEnv names a server to test besides the embedded node.
const serverEnv = "HUMANQA_TEST_EVENTSTORE_URL"

func TestNamedServerConforms(t *testing.T) {
	url := os.Getenv(serverEnv)
	if url == "" {
		t.Logf("%s is not set, there is no server to test", serverEnv)
		return
	}
	conformance.Run(t, func() *esdb.Configuration {
		config, err := esdb.ParseConnectionString(url)
		must.NoError(t, err)
		config.Logger = nil
		return config
	})
}
