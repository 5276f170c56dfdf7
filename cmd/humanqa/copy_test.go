package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"humanqa/eventstore/logtest"
	"humanqa/internal/pgtest"
)

func TestAServiceMovesToAnotherLogAndBack(t *testing.T) {
	t.Parallel()
	url := logtest.Server(t, pgtest.NewDSN(t))
	p := newProgram(t)
	s := p.start()
	_, key := p.newAccount(100)
	project := p.newProject(key, "")
	first := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(3, "projectId", project)).text("jobId")

	var got copied
	p.cli(&got, "eventstore", "copy", "embedded", url) // while it runs
	if got.Added == 0 || got.Events != got.Added || got.SamePlaces || got.Rebound {
		t.Errorf("the first copy: %+v", got)
	}
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
	p.call(http.StatusOK, "POST", "/v1/jobs/"+first+"/cancel", key, nil)
	p.refuses("the service runs: stop it first", "eventstore", "copy", "embedded", url, "--rebind")
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
	var late struct{ Projections []listedProjection }
	p.cli(&late, "projections", "list")
	for _, l := range late.Projections {
		if (l.LagSeconds > 0) != (l.Lag > 0) || l.Lag == 0 {
			t.Errorf("%s is %d positions behind, which is %gs", l.Name, l.Lag, l.LagSeconds)
		}
	}
	var checkpoint printedCheckpoint
	p.cli(&checkpoint, "audit", "checkpoint")

	elsewhere := "HUMANQA_EVENTSTORE_URL=" + url
	p.environ = append(p.environ, elsewhere)
	p.refuses("are copies of each other: humanqa eventstore copy --rebind", "serve")
	missing := got.Events
	p.cli(&got, "eventstore", "copy", "embedded", url, "--rebind")
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
