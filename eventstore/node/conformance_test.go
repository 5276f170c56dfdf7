package node_test

import (
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/internal/testing/conformance"
)

func TestNodeConforms(t *testing.T) {
	n := onSocket(t)
	conformance.Run(t, func() *esdb.Configuration { return socketConfig(n.Addr()) })
}
