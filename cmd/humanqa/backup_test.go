package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/httpapi/evidence"
	"humanqa/internal/blob"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
)

// album is a client and a checker who only make evidence.
type album struct {
	*load
	account, checker string

	mu       sync.Mutex
	pictures map[string][]byte // path and query of the signed link, to what was uploaded
}

func newAlbum(l *load) *album {
	_, account := l.newAccount(100_000)
	_, checker := l.newChecker()
	return &album{load: l, account: account, checker: checker, pictures: map[string][]byte{}}
}

func (a *album) run() {
	for n := 0; a.going(); n++ {
		r := a.settled("POST", "/v1/jobs", a.account, submission(1))
		claim := a.settled("POST", "/v1/checker/claims", a.checker, map[string]any{"jobId": r.text("jobId")})
		if claim.status != http.StatusCreated {
			continue // one of the others was faster
		}
		a.upload(claim, []byte(filetest.PNG(fmt.Sprintf("picture %d", n))))
		a.work(a.checker, claim, rand.New(rand.NewPCG(uint64(n), 3)))
	}
}

func (a *album) upload(claim reply, picture []byte) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "shot.png")
	if err == nil {
		_, err = part.Write(picture)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		a.t.Error(err)
		return
	}
	req, err := http.NewRequest(http.MethodPost, a.url("/v1/checker/jobs/"+claim.text("jobId")+"/evidence"), &form) //nolint:noctx // the client has a time-out
	if err != nil {
		a.t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+a.checker)
	req.Header.Set("X-Claim-Token", claim.text("claimToken"))
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := a.client.Do(req)
	if err != nil {
		a.t.Error(err)
		return
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusCreated {
		a.t.Errorf("upload: %v %d %s", err, res.StatusCode, body)
		return
	}
	link, err := url.Parse(reply{body: body}.text("url"))
	if err != nil {
		a.t.Error(err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pictures[link.RequestURI()] = picture
}

func (a *album) acknowledged() (jobs map[string]string, pictures map[string][]byte) {
	a.mu.Lock()
	pictures = maps.Clone(a.pictures)
	a.mu.Unlock()
	a.load.mu.Lock()
	defer a.load.mu.Unlock()
	return maps.Clone(a.jobs), pictures
}

// A backup of a service at work is one moment of it: whatever was answered
// before is there, and every invariant holds.
func TestABackupUnderLoadRestoresWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.start()
	dice := rand.New(rand.NewPCG(1, 0))
	l := newLoad(p, dice, plenty[0])
	a := newAlbum(l)
	l.submit(0, l.accounts[0])
	l.takeFromQueue(l.checkers[0])
	l.workers.Go(a.run)
	atLeast := func(n int) (jobs map[string]string, pictures map[string][]byte) {
		eventually.Within(t, eventually.Patience, func() error {
			if jobs, pictures = a.acknowledged(); len(jobs) < 5*n || len(pictures) < n {
				return fmt.Errorf("%d jobs and %d pictures", len(jobs), len(pictures))
			}
			return nil
		})
		return jobs, pictures
	}
	jobs, pictures := atLeast(3)
	file := filepath.Join(t.TempDir(), "backup.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	atLeast(6) // the load goes on after it
	l.stop()
	s.stop()
	if made.File != file || made.Events == 0 || made.Evidence < len(pictures) || len(made.Missing) != 0 || made.EvidenceAt != "" {
		t.Errorf("backup printed %+v, %d pictures were acknowledged", made, len(pictures))
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || info.Size() != made.Bytes {
		t.Errorf("the backup is %v, %v; want mode 0600 and %d bytes", info, err, made.Bytes)
	}
	if _, err := os.Stat(file + ".partial"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file is left: %v", err)
	}

	q := newEmbedded(t)
	q.restore(file, made.Events)
	again := q.start()
	for id, key := range jobs {
		again.call(http.StatusOK, "GET", "/v1/jobs/"+id, key, nil)
	}
	for link, picture := range pictures {
		if r := again.call(http.StatusOK, "GET", link, "", nil); !bytes.Equal(r.body, picture) || r.header.Get("Content-Type") != "image/png" {
			t.Errorf("the picture of %s is %q", link, r.body)
		}
	}
	t.Logf("%d jobs and %d pictures of %d events", len(jobs), len(pictures), made.Events)
	// What was under way at the backup's moment is settled as after a crash.
	eventually.Within(t, eventually.Patience, func() error {
		if stdout, stderr, err := q.tryCLI("fsck"); err != nil {
			return fmt.Errorf("fsck: %w\n%s%s", err, stdout, stderr)
		}
		return nil
	})
	again.stop()

	second := filepath.Join(t.TempDir(), "second.zip")
	q.cli(&made, "backup", second) // of a service that is stopped
	t.Run("a restore that was cut off is gone on with", func(t *testing.T) { restoreCutOff(t, second, made, l.accounts[0]) })
}

// restore makes the data directory of a backup, in which nothing is wrong: the
// command itself checks every invariant. The log says that it was restored.
func (p *program) restore(file string, events int64) {
	p.t.Helper()
	var out restored
	p.cli(&out, "restore", file)
	if out.DataDir != p.dir || out.Events != int(events)+1 || len(out.Findings) != 0 || out.Made.IsZero() {
		p.t.Errorf("restore printed %+v, want %d events and no findings", out, events+1)
	}
	if entries, err := os.ReadDir(p.dir); err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == service.RestoreMark }) {
		p.t.Errorf("the data directory holds %v, %v", entries, err)
	}
}

func TestARestoreRefusesWhatItWouldSpoilOrCannotTrust(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.start("--demo")
	_, key := p.newAccount(5)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	whole, err := os.ReadFile(file)
	must.NoError(t, err)
	other := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	at := bytes.Index(whole, []byte("PGDMP")) // how the dump begins
	changed := slices.Clone(whole)
	changed[at+1000] ^= 1
	elsewhere := newEmbedded(t)
	for file, want := range map[string]string{
		filepath.Join(dir, "nothing"): "no such file",
		other("foreign", []byte("hello, this is no backup at all, but long enough to be one")): "foreign is no backup of humanqa",
		other("empty", nil):                  "empty is no backup of humanqa",
		other("short", whole[:len(whole)-1]): "short is a backup that was cut off",
		other("half", whole[:len(whole)/2]):  "half is a backup that was cut off",
		other("start", whole[:60]):           "start is a backup that was cut off",
		other("changed", changed):            "changed is a backup that cannot be used: ",
	} {
		elsewhere.refuses(want, "restore", file)
	}
	if _, err := os.Stat(elsewhere.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a refused restore made the data directory: %v", err)
	}

	p.refuses("backup.zip exists already: name another file", "backup", file)
	p.refuses(p.dir+" is not empty, and nothing is written over", "restore", file)
	s.call(http.StatusOK, "GET", "/v1/credits", key, nil) // it still does
	s.stop()
	full := newEmbedded(t)
	must.NoError(t, os.MkdirAll(filepath.Join(full.dir, "holiday"), 0o700))
	full.refuses("is not empty", "restore", file)
	newEmbedded(t).refuses("no data here", "backup", filepath.Join(dir, "other.zip"))
	for setting, want := range map[string]string{
		"HUMANQA_DATABASE_URL=postgres://nowhere.invalid/x": "use pg_dump",
		"HUMANQA_EVENTSTORE_URL=esdb://nowhere.invalid":     "cannot back up",
		"HUMANQA_EVIDENCE_URL=s3://bucket?region=x":         "it holds the evidence",
	} {
		newEmbedded(t, setting).refuses(want, "restore", file)
	}
}

// refuses runs a command that must fail with one line.
func (p *program) refuses(want string, args ...string) {
	p.t.Helper()
	stdout, stderr, err := p.tryCLI(args...)
	if line := regexp.MustCompile(`^humanqa: ([^A-Z\n]|HUMANQA_)[^\n]*\n$`); exitCode(err) != exitFailed || !strings.Contains(stderr, want) || !line.MatchString(stderr) || stdout != "" {
		p.t.Errorf("humanqa %s: %v, %q %q; want one line with %q", strings.Join(args, " "), err, stdout, stderr, want)
	}
}

// Nobody takes half a restore for a service's data, and the same command goes
// on with it.
func restoreCutOff(t *testing.T, file string, made backup.Saved, key string) {
	q := newEmbedded(t)
	q.restore(file, made.Events)
	// As a crash before its last step leaves it.
	must.NoError(t, os.WriteFile(filepath.Join(q.dir, service.RestoreMark), nil, 0o600))
	for _, args := range [][]string{{"serve"}, {"fsck"}, {"backup", file + ".2"}} {
		q.refuses("a restore into "+q.dir+" was cut off: run humanqa restore again", args...)
	}
	q.restore(file, made.Events)
	q.start().call(http.StatusOK, "GET", "/v1/credits", key, nil)
}

func TestEvidenceWhoseFileIsLostIsFoundAndCostsNoBackup(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.start()
	l := newLoad(p, rand.New(rand.NewPCG(1, 0)))
	a := newAlbum(l)
	l.workers.Go(a.run)
	eventually.Within(t, eventually.Patience, func() error {
		if _, pictures := a.acknowledged(); len(pictures) < 2 {
			return fmt.Errorf("%d pictures", len(pictures))
		}
		return nil
	})
	l.stop()
	pictures, err := filepath.Glob(filepath.Join(p.dir, "evidence", "*", "*", "*[0-9a-f]"))
	if err != nil || len(pictures) < 2 {
		t.Fatalf("%v %v", pictures, err)
	}
	must.NoError(t, os.Remove(pictures[0]))
	lost, err := filepath.Rel(filepath.Join(p.dir, "evidence"), pictures[0])
	must.NoError(t, err)
	stdout, _, err := p.tryCLI("fsck")
	if want := "the file of evidence " + lost + " is lost\n"; exitCode(err) != exitFailed || strings.Count(stdout, "\n") != 2 || !strings.Contains(stdout, want) {
		t.Errorf("fsck: %v %q, want %q", err, stdout, want)
	}
	p.movesEvidence(t, len(pictures)-1, lost)
	var made backup.Saved
	p.cli(&made, "backup", filepath.Join(t.TempDir(), "backup.zip"))
	s.stop()
	if !slices.Equal(made.Missing, []string{lost}) || made.Evidence != len(pictures)-1 {
		t.Errorf("backup printed %+v, want it without %s", made, lost)
	}
}

// movesEvidence copies it to another place and back, in pieces. A file that no row names is
// taken away there, and a file of another owner is not.
func (p *program) movesEvidence(t *testing.T, pictures int, lost string) {
	t.Helper()
	there := filepath.Join(t.TempDir(), "bucket")
	from, to := blob.Directory(filepath.Join(p.dir, "evidence")), blob.Directory(there)
	account, _, _ := strings.Cut(lost, "/")
	erased := filepath.Join(there, account, uuid.NewString(), uuid.NewString())
	others := []string{filepath.Join(there, "others", "file"), filepath.Join(there, uuid.NewString(), uuid.NewString(), uuid.NewString())}
	for _, file := range append([]string{erased}, others...) {
		must.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("x"), 0o600)))
	}
	var first, second, back evidence.Copied
	p.cli(&first, "evidence", "copy", from, to)
	if first.Files != pictures || first.There != 0 || first.Removed != 1 || !slices.Equal(first.Lost, []string{lost}) {
		t.Errorf("the copy: %+v", first)
	}
	for _, file := range others { // another installation's, or none of ours
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	copied, err := filepath.Glob(filepath.Join(there, account, "*", "*[0-9a-f]"))
	if err != nil || len(copied) != pictures {
		t.Fatalf("%d files are there, %v", len(copied), err)
	}
	must.NoError(t, os.WriteFile(copied[0], []byte("half"), 0o600))
	p.cli(&second, "evidence", "copy", from, to)
	p.cli(&back, "evidence", "copy", to, from)
	if second.Files != 1 || second.There != pictures-1 || back.Files != 0 || back.There != pictures {
		t.Errorf("again: %+v, and back: %+v", second, back)
	}
	p.refuses("the new place is neither s3://bucket", "evidence", "copy", from, "/tmp/x")
}
