package main

import (
	"context"
	"flag"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service/models"
	"humanqa/eventstore"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

var copyEvents = flag.Int("copy.events", 0, "how many events TestAServiceMovesToAnotherLogAndBack copies, under load and killed twice; 0: a few")

// copiedUnderLoad submits jobs until there are so many events, and copies them
// meanwhile: two copies are killed on their way.
func (p *program) copiedUnderLoad(url string, events int) {
	p.t.Helper()
	var written atomic.Int64
	var stop atomic.Bool
	var clients sync.WaitGroup
	jobs := make([]any, 20)
	for i := range jobs {
		jobs[i] = submission(1)
	}
	defer func() { stop.Store(true); clients.Wait() }()
	for range 4 {
		_, key := p.newAccount(10_000_000)
		clients.Go(func() {
			for !stop.Load() {
				got, err := p.try("POST", "/v1/jobs/bulk", key, map[string]any{"jobs": jobs})
				if err != nil || got.status != http.StatusCreated {
					p.t.Errorf("submit: %d, %v", got.status, err)
					return
				}
				written.Add(2 * int64(len(jobs))) // a debit and a job
			}
		})
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	to, err := eventstore.Open(url, quiet)
	must.NoError(p.t, err)
	defer func() { _ = to.Close() }() // it was only read
	grown := func(what string, by func() int64, to int) {
		for !p.t.Failed() && by() < int64(to) {
			eventually.True(p.t, what, func() func() bool { was := by(); return func() bool { return by() > was } }())
		}
	}
	grown("the log grows", written.Load, events/2)
	for killed := range 2 {
		copying := p.command(context.Background(), "eventstore", "copy", "embedded", url)
		must.NoError(p.t, copying.Start())
		grown("the copy grows", func() int64 {
			at, err := to.Head(p.t.Context())
			must.NoError(p.t, err)
			return int64(at.Commit) // an embedded node counts events
		}, events/10*(killed+1))
		_ = copying.Process.Kill() // how it ended is told next
		if err := copying.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			p.t.Errorf("copy %d ended by itself: %v", killed+1, err)
		}
	}
	grown("the log grows", written.Load, events)
}

func TestAServiceMovesToAnotherLogAndBack(t *testing.T) {
	t.Parallel()
	url := logtest.Server(t, pgtest.NewDSN(t))
	p := newProgram(t)
	s := p.start()
	_, key := p.newAccount(100)
	project := p.newProject(key, "")
	if *copyEvents > 0 {
		p.copiedUnderLoad(url, *copyEvents)
	}
	first := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(3, "projectId", project)).text("jobId")

	const example = "esdb://admin:changeit@log.example.com:2113" // of docs/eventstore.md
	var got copied
	_, copying := p.asWritten(`bin/humanqa eventstore copy embedded "esdb://admin:changeit@log.example.com:2113"`, example, url)
	p.cli(&got, copying...) // while it runs
	t.Logf("%+v", got)
	if got.Added == 0 || (got.Events != got.Added) != (*copyEvents > 0) || got.SamePlaces || got.Rebound {
		t.Errorf("the first copy: %+v", got)
	}
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
	p.call(http.StatusOK, "POST", "/v1/jobs/"+first+"/cancel", key, nil)
	_, rebinding := p.asWritten(`bin/humanqa eventstore copy embedded "esdb://admin:changeit@log.example.com:2113" --rebind`, example, url)
	p.refuses("the service runs: stop it first", rebinding...)
	reads := []string{"/v1/jobs", "/v1/credits", "/v1/projects", "/v1/jobs/" + first, "/v1/projects/" + project + "/history"}
	read := func() (all []string) {
		for _, path := range reads {
			all = append(all, string(p.call(http.StatusOK, "GET", path, key, nil).body))
		}
		return all
	}
	before := read()
	happened := len(p.events(t, key))
	s.stop()
	p.newAccount(1) // nobody shows it yet
	var late struct{ Projections []models.Listed }
	p.cli(&late, "projections", "list")
	for _, l := range late.Projections {
		if (l.LagSeconds > 0) != (l.Lag > 0) || l.Lag == 0 {
			t.Errorf("%s is %d positions behind, which is %gs", l.Name, l.Lag, l.LagSeconds)
		}
	}
	var checkpoint printedCheckpoint
	p.cli(&checkpoint, "audit", "checkpoint")

	elsewhere, serving := p.asWritten(`HUMANQA_EVENTSTORE_URL="esdb://admin:changeit@log.example.com:2113" bin/humanqa serve`, example, url)
	p.environ = append(p.environ, elsewhere...)
	p.refuses("are copies of each other: humanqa eventstore copy --rebind", serving...)
	missing := got.Events
	p.cli(&got, rebinding...)
	if got.Added == 0 || got.Events != missing+got.Added || !got.Rebound || got.Grown {
		t.Errorf("the last copy: %+v after %d events", got, missing)
	}
	s = p.start()
	if after := read(); !slices.Equal(before, after) {
		t.Errorf("the service answers otherwise than before:\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if n := len(p.events(t, key)); n != happened {
		t.Errorf("%d announcements, and %d before", n, happened)
	}
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
	p.fsck() // and every proof of before stands
	before = read()
	s.stop()

	p.environ = p.environ[:len(p.environ)-1]
	p.refuses("are copies of each other", "serve")
	p.cli(&got, "eventstore", "copy", url, "embedded", "--rebind") // what the node held is the beginning
	if !got.Rebound {
		t.Errorf("back: %+v", got)
	}
	s = p.start()
	if after := read(); !slices.Equal(before, after) {
		t.Error("back on its own log the service answers otherwise")
	}
	p.fsck()
	s.stop()
}
