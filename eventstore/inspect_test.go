package eventstore

import (
	"path/filepath"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/origin"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// byName also checks that nothing was found twice.
func byName(t *testing.T, findings []Finding) map[string]Finding {
	t.Helper()
	all := map[string]Finding{}
	for _, f := range findings {
		if _, twice := all[f.What]; twice {
			t.Errorf("%s is told twice", f.What)
		}
		if f.OK == (f.Hint != "") {
			t.Errorf("%+v: what to do is said where something is missing, only there", f)
		}
		all[f.What] = f
	}
	return all
}

func TestAnInspectionFindsWhatTheServiceNeedsAndWritesNothing(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	found := byName(t, c.Inspect(t.Context()))
	for what, want := range map[string]string{
		"connection": "a unix socket", "version": ".", "nodes": "1, the leader is ", "append": "allowed", "read $all": "allowed",
		"subscribe to $all": "allowed", "set metadata": "allowed", "name": "none yet", "round trips": "a read ",
	} {
		if f := found[what]; !f.OK || !strings.Contains(f.Detail, want) {
			t.Errorf("%s: %+v, want %q", what, f, want)
		}
	}
	if at, err := c.Head(t.Context()); err != nil || at != (domain.Position{}) {
		t.Errorf("the log has an event at %s, %v", at, err)
	}
	_, err := c.Append(t.Context(), origin.Stream, domain.NoStream, []domain.NewEvent{newEvent(&origin.Named{LogID: "the-name"})})
	must.NoError(t, err)
	if f := byName(t, c.Inspect(t.Context()))["name"]; f.Detail != "the-name" {
		t.Errorf("the name is %+v", f)
	}
}

func TestAnInspectionSaysAsWhomAndWhyNot(t *testing.T) {
	t.Parallel()
	certs := filepath.Join(t.TempDir(), "certs")
	n, err := node.Start(t.Context(), node.Config{DSN: pgtest.NewDSN(t), Listen: "localhost:0", CertDir: certs, Log: quietLog()})
	must.NoError(t, err)
	t.Cleanup(func() { _ = n.Close(t.Context()) })
	inspect := func(connection string) map[string]Finding {
		c, err := Open(connection, quietLog())
		must.NoError(t, err)
		defer func() {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
		return byName(t, c.Inspect(t.Context()))
	}
	at := strings.TrimPrefix(n.ConnectionStrings()[0], "esdb://")
	as := func(user string) string { return "esdb://" + user + "@" + at }
	right := as("admin:" + n.GeneratedPassword())
	if f := inspect(right); !f["connection"].OK || f["connection"].Detail != "TLS, as admin" || !f["append"].OK || !f["nodes"].OK {
		t.Errorf("got %+v", f)
	}
	for _, wrong := range []string{as("admin:guessed"), "esdb://" + at} {
		if f := inspect(wrong)["append"]; f.OK || !strings.Contains(f.Hint, "user and password") {
			t.Errorf("%s: %+v", wrong, f)
		}
	}
	host, _, _ := strings.Cut(at, "?")
	if f := inspect("esdb://" + host)["connection"]; f.OK || !strings.Contains(f.Hint, "tlsCaFile") {
		t.Errorf("without the authority: %+v", f)
	}
}
