package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service/logging"
	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

// A service whose log is an address at which another log begins to answer, by a
// mistake or after a restore: what it shows and what it would write no longer
// belong together.
func TestAStrangeLogIsRefusedByNameWhileRunningAtTheStartAndByCommands(t *testing.T) {
	t.Parallel()
	address := process.Address(t)
	listens := "HUMANQA_EVENTSTORE_LISTEN_INSECURE=" + address
	first, second := newProgram(t, listens), newProgram(t, listens)
	owner := first.start()
	p := newProgram(t, "HUMANQA_EVENTSTORE_URL=esdb://"+address+"?tls=false")
	s := p.start()
	_, key := p.newAccount(20)
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))

	var checked struct {
		Findings []struct{ What, Detail string }
	}
	_, check := p.asWritten(`bin/humanqa eventstore check`)
	p.cli(&checked, check...) // what HUMANQA_EVENTSTORE_URL names
	first.cli(&checked, check...)
	p.cli(&checked, "eventstore", "check", "esdb://"+address+"?tls=false")
	if n := len(checked.Findings); n != 10 || checked.Findings[n-2].What != "name" || strings.HasPrefix(checked.Findings[n-2].Detail, "none") {
		t.Errorf("eventstore check finds %+v", checked.Findings)
	}

	owner.stop()
	if _, stderr, err := p.tryCLI("eventstore", "check"); exitCode(err) != exitFailed || !strings.Contains(stderr, "1 of 1 things that the service needs") {
		t.Errorf("eventstore check of a log that is away: %v, %s", err, stderr)
	}
	stranger := second.start()
	const names = "and this database belongs to"
	eventually.Within(t, eventually.Patience, func() error {
		r, err := p.try("GET", "/v1/credits", key, nil)
		if err == nil && (r.status != http.StatusServiceUnavailable || !strings.Contains(r.text("error"), names)) {
			err = fmt.Errorf("got %d %s", r.status, r.body)
		}
		return err
	})
	for _, path := range []string{"/readyz", "/v1/jobs", "/dashboard"} {
		if r := p.call(http.StatusServiceUnavailable, "GET", path, key, nil); !strings.Contains(r.text("error"), names) {
			t.Errorf("%s answers %s", path, r.body)
		}
	}
	if r := p.call(http.StatusServiceUnavailable, "POST", "/v1/jobs", key, submission(1)); !strings.Contains(r.text("hint"), "HUMANQA_EVENTSTORE_URL") {
		t.Errorf("a submission answers %s", r.body)
	}
	p.refuses(names, "fsck")
	s.stop()
	p.refuses(names, "serve")
	p.refuses(names, "fsck")

	stranger.stop()
	first.start()
	again := p.start()
	if got := p.call(http.StatusOK, "GET", "/v1/credits", key, nil).number("total"); got != 20 {
		t.Errorf("%d credits after the log came back", got)
	}
	p.fsck()
	again.stop()
}

func TestTheStartSaysWhatTheLogLacks(t *testing.T) {
	t.Parallel()
	n, err := node.Start(t.Context(), node.Config{
		DSN: pgtest.NewDSN(t), Listen: "localhost:0", CertDir: t.TempDir(), Log: logging.Quiet(logging.New("", logrus.PanicLevel, t.Output())),
	})
	must.NoError(t, err)
	t.Cleanup(func() { _ = n.Close(t.Context()) }) // cut off
	url := strings.Replace(n.ConnectionStrings()[0], "esdb://", "esdb://admin:guessed@", 1)
	_, stderr, err := newProgram(t, "HUMANQA_EVENTSTORE_URL="+url).tryCLI("serve")
	for _, want := range []string{"FAIL  append", "FAIL  read $all", "put user and password into the address", "humanqa: read the log's name"} {
		if exitCode(err) != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%v: %s\nwant %q", err, stderr, want)
		}
	}
	if strings.Contains(stderr, "guessed") {
		t.Errorf("the password is shown: %s", stderr)
	}
}
