package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// readmeSettings gives the settings of each process that README.md starts in
// its section of that name, as they are written there.
func readmeSettings(t *testing.T, section string) (processes [][]string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	must.NoError(t, err)
	_, text, found := strings.Cut(string(readme), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	if !found {
		t.Fatalf("README.md has no section %q", section)
	}
	var exported []string
	assignment := regexp.MustCompile(`(HUMANQA_\w+)=("[^"]*"|\S+)`)
	for line := range strings.Lines(text) {
		var set []string
		for _, m := range assignment.FindAllStringSubmatch(line, -1) {
			set = append(set, m[1]+"="+strings.Trim(m[2], `"`))
		}
		switch {
		case strings.HasPrefix(line, "export "):
			exported = set
		case strings.HasSuffix(strings.TrimSpace(line), "bin/humanqa serve"):
			processes = append(processes, append(exported[:len(exported):len(exported)], set...))
		}
	}
	return processes
}

// The set-up of README.md, with nothing but its addresses and directories
// replaced by this test's.
func TestTwoProcessesShareTheWorkAsTheREADMESays(t *testing.T) {
	t.Parallel()
	log := process.Address(t)
	processes := readmeSettings(t, "More than one process")
	if len(processes) != 2 {
		t.Fatalf("README.md starts %d processes, want 2: %v", len(processes), processes)
	}
	api, worker := newProgram(t), newProgram(t)
	here := strings.NewReplacer(
		"postgres://humanqa:secret@127.0.0.1:5432/humanqa?sslmode=disable", api.dsn(),
		"127.0.0.1:2113", log,
		"127.0.0.1:8080", api.addr,
		".humanqa-worker", worker.dir,
		".humanqa/", api.dir+"/",
	)
	for i, p := range []*program{api, worker} {
		for _, setting := range processes[i] {
			p.environ = append(p.environ, here.Replace(setting))
		}
	}
	first := api.launch()
	eventually.Within(t, eventually.Patience, func() error {
		res, err := api.client.Get(api.url("/healthz")) //nolint:noctx // the client has a time-out
		if err != nil {
			return err
		}
		return res.Body.Close()
	})
	var banner bytes.Buffer
	cmd := worker.command(context.Background(), "serve")
	cmd.Stdout = &banner
	second := worker.launchAs(cmd)
	first.waitReady()

	for _, p := range []*program{api, worker} { // the commands work beside either
		_, key := p.newAccount(5)
		job := api.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)).text("jobId")
		if got := api.call(http.StatusOK, "GET", "/v1/jobs/"+job, key, nil).text("status"); got != "pending" {
			t.Errorf("the job is %s", got)
		}
	}
	second.stop()
	first.stop()
	if said := banner.String(); !strings.Contains(said, "this process runs projector,webhooks,policy") || strings.Contains(said, worker.addr) || strings.Contains(said, api.addr) {
		t.Errorf("a process without the API says %q", said)
	}
	if _, err := os.Stat(fmt.Sprint(worker.dir, "/master-keyset.json")); err == nil {
		t.Error("the second process made a keyset of its own")
	}
}
