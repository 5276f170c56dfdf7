package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/doctor"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
)

func (p *program) keyset() string { return filepath.Join(p.dir, "master-keyset.json") }

func (p *program) read(file string) []byte {
	p.t.Helper()
	content, err := os.ReadFile(file)
	must.NoError(p.t, err)
	return content
}

// withCredentials is a submission with a secret of the account and texts of its own.
func withCredentials(n int) map[string]any {
	return submission(1, "title", fmt.Sprint("The shop ", n), "credentials", map[string]any{"email": "qa@example.com", "password": fmt.Sprint("hunter", n)})
}

// The whole story: two steps under a running service, a restart, a backup, and an older file.
func TestTheMasterKeyIsChangedUnderARunningService(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.start()
	_, key := p.newAccount(100)
	first := p.read(p.keyset())
	var jobs []string
	submit := func() {
		t.Helper()
		jobs = append(jobs, p.call(http.StatusCreated, "POST", "/v1/jobs", key, withCredentials(len(jobs))).text("jobId"))
	}
	submit()
	var out vault.Rotated
	p.cli(&out, "keys", "rotate")
	if out.Step != vault.KeysRewrapped || out.Rewrapped == 0 {
		t.Errorf("rotate printed %+v", out)
	}
	submit()
	_, newer := p.newAccount(10) // a data key of its own
	p.cli(nil, "keys", "rotate", "--finish")
	submit()
	p.call(http.StatusCreated, "POST", "/v1/jobs", newer, withCredentials(9))
	file := filepath.Join(t.TempDir(), "after.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	p.cli(nil, "audit", "verify") // MACs of both keys
	p.fsck()
	s.stop()

	must.NoError(t, os.WriteFile(p.keyset(), first, 0o600))
	for _, args := range [][]string{{"serve"}, {"audit", "verify"}, {"backup", file + ".2"}} {
		p.refuses("lacks the key "+out.KeyID+", which this database's keys are wrapped under: put the newest keyset back", args...)
	}
	q := newEmbedded(t)
	q.restore(file, made.Events)
	again := q.start()
	for n, id := range jobs {
		if got := again.call(http.StatusOK, "GET", "/v1/jobs/"+id, key, nil).text("title"); got != fmt.Sprint("The shop ", n) {
			t.Errorf("the job %d is %q", n, got)
		}
	}
	q.fsck()
}

// No file of the data directory holds the keyset, and neither does the backup.
func TestAKeysetThatAProgramGivesIsKeptOnNoDisk(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	p.start().stop()
	store := filepath.Join(t.TempDir(), "store")
	must.NoError(t, os.Rename(p.keyset(), store))
	p.environ = append(p.environ, "HUMANQA_MASTER_KEY_COMMAND=cat "+store)
	s := p.start()
	_, key := p.newAccount(100)
	submit := func(n int) (id string) {
		t.Helper()
		return s.call(http.StatusCreated, "POST", "/v1/jobs", key, withCredentials(n)).text("jobId")
	}
	id := submit(0)
	p.refuses("name by --store a program", "keys", "rotate")
	p.cli(nil, "keys", "rotate", "--store", "tee "+store)
	submit(1)
	p.cli(nil, "keys", "rotate", "--finish", "--store", "tee "+store)
	submit(2)
	file := filepath.Join(t.TempDir(), "backup.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	s.stop()
	if made.Keyset {
		t.Errorf("backup printed %+v", made)
	}
	if _, err := os.Stat(p.keyset()); err == nil {
		t.Error("the keyset is on the disk")
	}
	newEmbedded(t).refuses("its keyset is not in it: set HUMANQA_MASTER_KEY_COMMAND", "restore", file)
	newEmbedded(t, "HUMANQA_MASTER_KEY_COMMAND=cat "+store).refuses("it holds its keyset", "restore", olderBackup(t))
	q := newEmbedded(t, "HUMANQA_MASTER_KEY_COMMAND=cat "+store)
	q.restore(file, made.Events)
	if got := q.start().call(http.StatusOK, "GET", "/v1/jobs/"+id, key, nil).text("title"); got != "The shop 0" {
		t.Errorf("the job is %q", got)
	}
}

func TestTheDoctorComparesTheKeysetWithTheDatabase(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	keys := func() doctor.Finding {
		t.Helper()
		stdout, stderr, _ := p.tryCLI("--json", "doctor") // other parts may be wrong
		var told examined
		if err := json.Unmarshal([]byte(stdout), &told); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		return told.finding("keys")
	}
	put := func(content []byte, mode os.FileMode) {
		t.Helper()
		must.NoError(t, os.WriteFile(p.keyset(), content, 0o600))
		must.NoError(t, os.Chmod(p.keyset(), mode))
	}
	if f := keys(); f.State != doctor.Note || f.Detail != "there is no keyset" {
		t.Errorf("before the first start: %+v", f)
	}
	p.start().stop()
	if f := keys(); f.State != doctor.OK {
		t.Errorf("a right one: %+v", f)
	}
	good := p.read(p.keyset())
	other := newProgram(t)
	other.start().stop()
	for name, c := range map[string]struct {
		content []byte // nil: no file
		mode    os.FileMode
		want    string
	}{
		"missing":        {nil, 0, "is missing"},
		"garbage":        {[]byte("hunter2"), 0o600, "holds no tink keyset"},
		"world-readable": {good, 0o644, "has mode 0644, readable by others"},
		"wrong":          {other.read(other.keyset()), 0o600, "is not the one this database's keys were made with"},
	} {
		if c.content != nil {
			put(c.content, c.mode)
		} else {
			must.NoError(t, os.RemoveAll(p.keyset()))
		}
		f := keys()
		if f.State != doctor.Wrong || !strings.Contains(f.Detail, c.want) || f.Next == "" || strings.Contains(f.Detail, "hunter2") {
			t.Errorf("%s: %+v; want %q", name, f, c.want)
		}
	}
	put(good, 0o600)
	p.cli(nil, "keys", "rotate") // with a Postgres of one's own it stops behind the new key
	if f := keys(); f.State != doctor.OK {
		t.Errorf("with a key that nothing is under: %+v", f)
	}
	p.cli(nil, "keys", "rotate")
	if f := keys(); f.State != doctor.Note || f.Detail != "the master key is being changed" {
		t.Errorf("in the middle of a rotation: %+v", f)
	}
	put(good, 0o600)
	if f := keys(); f.State != doctor.Wrong || !strings.Contains(f.Detail, "lacks the key ") {
		t.Errorf("an older one: %+v", f)
	}
}

// docs/keys.md, "No copy is left".
func TestAServiceWhoseKeysetIsLostGoesOnWithAnother(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.start()
	_, key := p.newAccount(10)
	id := s.call(http.StatusCreated, "POST", "/v1/jobs", key, withCredentials(0)).text("jobId")
	s.stop()
	must.NoError(t, os.Remove(p.keyset()))
	p.refuses("is missing, but the database holds keys made with it: put it back", "serve")
	_, sql, _ := strings.Cut(string(p.read("../../docs/keys.md")), "```sql\n")
	sql, _, found := strings.Cut(sql, "```")
	if !found {
		t.Fatal("docs/keys.md has no statements")
	}
	_, err := pgtest.NewDB(t, p.dsn()).ExecContext(t.Context(), sql)
	must.NoError(t, err)
	s = p.serve()
	eventually.True(t, "the service has made a keyset, and an operator accepts it", func() bool {
		_, _, err := p.tryCLI("audit", "accept", "--reason", "the keyset was lost")
		return err == nil
	})
	s.waitReady()
	if got := s.call(http.StatusOK, "GET", "/v1/jobs/"+id, key, nil).text("title"); got != "The shop 0" {
		t.Errorf("the job is %q", got)
	}
	s.call(http.StatusCreated, "POST", "/v1/jobs", key, withCredentials(1))
	p.cli(nil, "audit", "verify")
	p.cli(nil, "audit", "checkpoint")
}
