package node_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/conformance"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

var clientsDir = flag.String("clients", "", "the folder of others' clients; see make contract")

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

// The client that succeeds EventStore-Client-Go has a program of its own.
func TestTheNodeServesTheClientThatSucceedsOurs(t *testing.T) {
	if *clientsDir == "" {
		t.Skip("make contract runs it")
	}
	n := start(t, node.Config{DSN: pgtest.NewDSN(t), Listen: "127.0.0.1:0", CertDir: filepath.Join(t.TempDir(), "certs")})
	address := strings.Replace(n.ConnectionStrings()[0], "esdb://", "kurrentdb://"+node.Username+":"+n.GeneratedPassword()+"@", 1)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "test", "-count=1", ".", "-args", "-node", address)
	cmd.Dir = filepath.Join(*clientsDir, "kurrentdb")
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, printed)
	}
}
