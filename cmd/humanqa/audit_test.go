package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// A witness keeps a checkpoint, an operator changes an event by SQL, and
// everything that looks says so; untouched, everything holds, whether the
// service runs or is stopped.
func TestTheAuditOfALogThatWasChanged(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.start()
	account, key := p.newAccount(50)
	jobID := p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)).text("jobId")

	// By HTTP, as an account keeps it. The newest is a minute old at most.
	var (
		note     []byte
		verifier string
	)
	eventually.True(t, "the first checkpoint is served", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url("/v1/audit/checkpoint"), nil)
		must.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := p.client.Do(req)
		must.NoError(t, err)
		defer resp.Body.Close()
		note, err = io.ReadAll(resp.Body)
		verifier = resp.Header.Get("X-Audit-Key")
		return err == nil && resp.StatusCode == http.StatusOK
	})
	var printed struct{ Verifier string }
	p.cli(&printed, "audit", "key")
	if printed.Verifier != verifier || !strings.HasPrefix(string(note), strings.Split(verifier, "+")[0]+"\n") {
		t.Errorf("the key is %q, the API says %q of %s", printed.Verifier, verifier, note)
	}
	var signed printedCheckpoint
	p.cli(&signed, "audit", "checkpoint")
	kept := filepath.Join(t.TempDir(), "kept")
	must.NoError(t, os.WriteFile(kept, []byte(signed.Note), 0o600))
	events := p.replayed("job-" + jobID)
	var proof struct {
		Event      struct{ ID, Stream string }
		Checkpoint string
	}
	p.cli(&proof, "audit", "prove", "--event", events[0].ID.String(), "--against", kept)
	if proof.Event.Stream != "job-"+jobID || proof.Checkpoint != signed.Note {
		t.Errorf("got %+v", proof)
	}
	p.refuses("not found", "audit", "prove", "--event", jobID)
	var held verified
	p.cli(&held, "audit", "verify", "--against", kept)
	if held.Events < signed.Size || held.InTree < signed.Size || held.Checkpoints < 2 || len(held.Findings) != 0 {
		t.Errorf("untouched: %+v, the checkpoint has %d", held, signed.Size)
	}
	p.fsck()

	// A million credits, put in at the end, are neither spent nor signed nor overlooked, until
	// an operator says that they are known.
	rich, richKey := p.newAccount(1)
	p.forgeGrant(account, rich)
	p.call(http.StatusServiceUnavailable, "POST", "/v1/jobs", richKey, submission(1))
	if stdout, _, err := p.tryCLI("audit", "verify"); exitCode(err) != exitFailed || !strings.Contains(stdout, "events were put in by SQL") {
		t.Errorf("an event that the node has not met: %v %s", err, stdout)
	}
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1)) // the node finds that it is not alone
	if got := p.call(http.StatusOK, "GET", "/v1/credits", richKey, nil).number("available"); got != 1 {
		t.Errorf("%v credits are shown", got)
	}
	eventually.True(t, "the stream is set aside", func() bool {
		stdout, _, err := p.tryCLI("projections", "list")
		return err == nil && strings.Contains(stdout, "credits-"+rich)
	})
	p.refuses("the log holds what this service did not write", "audit", "checkpoint")
	p.refuses("is proved", "audit", "accept", "--event", events[0].ID.String(), "--reason", "a test")
	p.refuses("is proved", "audit", "disown", events[0].ID.String(), "--reason", "a test")
	p.cli(nil, "audit", "accept", "--reason", "it names no event, so it accepts none")
	forged := p.findsForged("credits-" + rich)
	p.cli(nil, "audit", "accept", "--event", forged, "--reason", "a test")
	eventually.True(t, "an operator answers for the credits", func() bool {
		r, err := p.try("POST", "/v1/jobs", richKey, submission(1))
		return err == nil && r.status == http.StatusCreated
	})
	p.refuses("was judged before", "audit", "disown", forged, "--reason", "too late")

	poor, poorKey := p.newAccount(1)
	p.forgeGrant(account, poor)
	p.call(http.StatusServiceUnavailable, "POST", "/v1/jobs", poorKey, submission(1))
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1))
	p.cli(nil, "audit", "disown", p.findsForged("credits-"+poor), "--reason", "nobody knows it")
	eventually.True(t, "the credits count for nothing", func() bool {
		r, err := p.try("POST", "/v1/jobs", poorKey, submission(1))
		return err == nil && r.status == http.StatusPaymentRequired
	})
	p.cli(nil, "credits", "grant", "--account", poor, "--amount", "10")
	p.call(http.StatusCreated, "POST", "/v1/jobs", poorKey, submission(1))
	eventually.True(t, "the read models go on with both streams", func() bool {
		stdout, _, err := p.tryCLI("projections", "list")
		return err == nil && !strings.Contains(stdout, "credits-")
	})
	if got := p.call(http.StatusOK, "GET", "/v1/credits", poorKey, nil).number("available"); got != 6 {
		t.Errorf("%v credits are left of 11", got)
	}
	p.keepsWhatWasSpent("credits-" + poor)
	p.cli(&signed, "audit", "checkpoint")
	p.cli(&held, "audit", "verify", "--against", kept)
	if held.Events < signed.Size || len(held.Findings) != 0 || held.MACsBehind != "1/1" {
		t.Errorf("accepted and disowned: %+v", held)
	}
	must.NoError(t, os.WriteFile(kept, []byte(signed.Note), 0o600))

	p.sql(`UPDATE readmodel.jobs SET source = 'apx' WHERE id = '` + jobID + `'`)
	if stdout, _, err := p.tryCLI("projections", "rebuild", "jobs", "--dry-run"); exitCode(err) != exitFailed || !strings.Contains(stdout, "source: is \"apx\", the log says \"api\"") {
		t.Errorf("a dry run tells %v %s", err, stdout)
	}
	p.sql(`UPDATE eventlog.events SET data = convert_to(replace(convert_from(data, 'UTF8'), '"source":"api"', '"source":"apx"'), 'UTF8') WHERE stream = 'job-` + jobID + `' AND type = 'job.created'`)
	s.stop()
	for _, command := range []string{"audit verify", "fsck"} {
		stdout, stderr, err := p.tryCLI(append(strings.Fields("--json "+command), "--against", kept)...)
		var out struct {
			Findings []struct {
				Invariant       int
				Stream, Problem string
			}
		}
		if jsonErr := json.Unmarshal([]byte(stdout), &out); jsonErr != nil || exitCode(err) != exitFailed {
			t.Fatalf("%s: %v %s %s", command, err, stdout, stderr)
		}
		told := ""
		for _, f := range out.Findings {
			told += f.Stream + " " + f.Problem + "\n"
			if strings.Count(f.Problem, "\n") >= 10 {
				t.Errorf("%s: more than ten lines: %s", command, f.Problem)
			}
		}
		want := []string{"job-" + jobID + " was changed: " + events[0].ID.String(), "\n  data: was SHA-256 ", "$all the first "}
		if command == "fsck" {
			want = append(want, "job-"+jobID+" the read model jobs has a row of jobs that the fold of the log lacks")
		}
		for _, part := range want {
			if !strings.Contains(told, part) {
				t.Errorf("%s does not tell %q:\n%s", command, part, told)
			}
		}
	}
}

// forgeGrant puts a grant of a million credits at the end of an account's ledger, made of
// the grant of 50 of another account.
func (p *program) forgeGrant(from, to string) {
	p.t.Helper()
	p.sql(`
		INSERT INTO eventlog.events
		SELECT (SELECT max(position) + 1 FROM eventlog.events), (SELECT max(revision) + 1 FROM eventlog.events WHERE stream = 'credits-` + to + `'),
		  created, gen_random_uuid(), is_json, 'credits-` + to + `', type,
		  convert_to(regexp_replace(replace(replace(convert_from(data, 'UTF8'), 'After":50', 'After":1000001'), ':50', ':1000000'), '"lotId":"[^"]*"', '"lotId":"forged"'), 'UTF8'),
		  metadata
		FROM eventlog.events
		WHERE stream = 'credits-` + from + `' AND type = 'credits.granted'`)
}

// keepsWhatWasSpent takes a bit of the MAC from the newest grant of a ledger, as if it were
// forged, and puts it back. A job was paid from the grant, as a version before the check did.
func (p *program) keepsWhatWasSpent(stream string) {
	p.t.Helper()
	granted := ""
	for _, e := range p.replayed(stream) {
		if e.Type == "credits.granted" {
			granted = e.ID.String()
		}
	}
	flip := `UPDATE eventlog.events SET metadata = set_byte(metadata, length(metadata) - 9, get_byte(metadata, length(metadata) - 9) # 1) WHERE event_id = '` + granted + `'`
	p.sql(flip)
	p.refuses("an older version went by it, and without it the ledger is damaged: job", "audit", "disown", granted, "--reason", "nobody knows it")
	p.sql(flip)
}

// findsForged has the audit name the one event that is not the service's.
func (p *program) findsForged(stream string) (id string) {
	p.t.Helper()
	stdout, _, err := p.tryCLI("audit", "verify")
	named := regexp.MustCompile(`([0-9a-f-]{36}) \(.* of ` + stream + `, position .* carries a MAC that is not this service's`).FindStringSubmatch(stdout)
	if exitCode(err) != exitFailed || named == nil || !strings.Contains(stdout, "MACs behind position 1/1, 1 findings") {
		p.t.Fatalf("a forged event: %v %s", err, stdout)
	}
	return named[1]
}

// replayed gives a stream's events as replay prints them.
func (p *program) replayed(stream string) (events []replayed) {
	p.t.Helper()
	stdout, stderr, err := p.tryCLI("--json", "replay", stream)
	if err != nil {
		p.t.Fatalf("replay %s: %v %s", stream, err, stderr)
	}
	for line := range strings.Lines(stdout) {
		var e replayed
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatalf("replay printed %q: %v", line, err)
		}
		events = append(events, e)
	}
	return events
}

// sql runs a statement on the database, past the service.
func (p *program) sql(statement string) {
	p.t.Helper()
	db, err := pgpool.Open(p.t.Context(), p.dsn())
	must.NoError(p.t, err)
	defer func() { _ = db.Close() }()
	result, err := db.ExecContext(p.t.Context(), statement)
	must.NoError(p.t, err)
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		p.t.Fatalf("%s did nothing: %v", statement, err)
	}
}
