package node

import (
	"net"
	"path/filepath"
	"testing"

	logrustest "github.com/sirupsen/logrus/hooks/test"
	"google.golang.org/grpc"

	"humanqa/internal/testing/must"
)

// A start that fails behind the node closes it, perhaps before its first connection.
func TestANodeThatIsClosedBeforeItListensTellsNoError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket")) //nolint:noctx // at once
	must.NoError(t, err)
	log, told := logrustest.NewNullLogger()
	e := &endpoint{listener: l, server: grpc.NewServer()}
	e.close()
	e.serve(log)
	if len(told.AllEntries()) != 0 {
		t.Errorf("it tells %q", told.LastEntry().Message)
	}
}
