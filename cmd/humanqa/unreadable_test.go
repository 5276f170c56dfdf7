package main

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/internal/testing/eventually"
)

// An older version of the embedded node took events that no message can carry: one of the
// service's own types here, and one of another client.
func TestALogWithAnEventThatCannotBeReadIsTakenOver(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.start()
	_, key := p.newAccount(50)
	job := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)).text("jobId")
	s.stop()
	for stream, eventType := range map[string]string{"job-" + job: "job.heartbeat", "foreign-1": "tested"} {
		p.sql(`
			INSERT INTO eventlog.events
			SELECT (SELECT max(position) + 1 FROM eventlog.events), (SELECT count(*) FROM eventlog.events WHERE stream = '` + stream + `'),
			  0, gen_random_uuid(), true, '` + stream + `', '` + eventType + `', '{}', convert_to(repeat('m', 17 << 20), 'UTF8')`)
	}

	p.start()
	for _, id := range []string{job, p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)).text("jobId")} {
		p.call(http.StatusOK, "GET", "/v1/jobs/"+id, key, nil)
	}
	eventually.True(t, "/readyz notes it", func() bool {
		r, err := p.try("GET", "/readyz", "", nil)
		return err == nil && r.status == http.StatusOK && strings.Contains(string(r.body), "goes on without 1 stream, since the event at ")
	})
	stdout, stderr, err := p.tryCLI("replay", "job-"+job)
	if err != nil || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, `{"$unreadable":{"bytes":17825794,`) {
		t.Errorf("replay: %v %s %s", err, stdout, stderr)
	}
	stdout, stderr, err = p.tryCLI("fsck")
	if exitCode(err) != exitFailed {
		t.Errorf("fsck: %v %s", err, stderr)
	}
	for _, stream := range []string{"job-" + job, "foreign-1"} {
		found := false
		for line := range strings.Lines(stdout) {
			found = found || strings.Contains(line, stream) && strings.Contains(line, "too large for a message of the log")
		}
		if !found {
			t.Errorf("fsck does not name %s:\n%s", stream, stdout)
		}
	}
}
