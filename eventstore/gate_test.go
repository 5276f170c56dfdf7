package eventstore_test

import (
	"os"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// The gate sees a connection turn bad by what the client library logs, and when
// (gate.go). A version that logs otherwise would compile, pass, and hang on the
// first node that goes away: so whoever changes it reads gate.go against the new
// one, and says so here.
func TestTheClientIsTheOneWhoseHabitsTheGateKnows(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("../go.mod")
	must.NoError(t, err)
	const client = "github.com/EventStore/EventStore-Client-Go/v4"
	var pinned []string
	for line := range strings.Lines(string(mod)) {
		if strings.Contains(line, client) {
			pinned = append(pinned, strings.Join(strings.Fields(line), " "))
		}
	}
	if want := client + " v4.2.0"; len(pinned) != 1 || pinned[0] != want {
		t.Errorf("go.mod pins %q, and gate.go knows the habits of %s", pinned, want)
	}
}
