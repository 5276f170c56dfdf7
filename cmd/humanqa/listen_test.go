package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"humanqa/internal/hqa/listen"
	"humanqa/internal/hqa/trigger"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// An operator receives and triggers without a key of the account. cmd/hqa tests the commands.
func operatorListens(t *testing.T, s *instance) {
	_, key := s.newSandbox(50)
	secret := filepath.Join(t.TempDir(), "secret")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), eventually.Patience)
	defer cancel()
	cmd := s.in(t).command(ctx, "--json", "listen", "--secret-file", secret)
	out, err := cmd.StdoutPipe()
	must.NoError(t, err)
	must.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	next := func(into any) {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("listen ended: %v", lines.Err())
		}
		must.NoError(t, json.Unmarshal(lines.Bytes(), into))
	}
	var at listen.Place
	next(&at)
	project := s.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]string{"name": "Shop", "webhookUrl": at.URL}).text("projectId")
	var told struct{ WebhookSecret string }
	s.cli(&told, "project", "secret", "--project", project)
	must.NoError(t, os.WriteFile(secret, []byte(told.WebhookSecret), 0o600))
	for _, event := range []string{trigger.Test, "job.created"} {
		var played trigger.Told
		s.cli(&played, "trigger", event, "--project", project)
		var h listen.Heard
		if next(&h); h.Event != event || !h.Verified || !strings.Contains(string(h.Body)+h.DeliveryID, played.DeliveryID+played.JobID) {
			t.Errorf("%s: %+v", event, h)
		}
	}
	if _, stderr, err := s.tryCLI("trigger", "job.created", "--project", "none"); err == nil || !strings.Contains(stderr, "project none") {
		t.Errorf("a project that is none: %v %q", err, stderr)
	}
	must.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	must.NoError(t, cmd.Wait())
}
