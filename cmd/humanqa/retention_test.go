package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/httpapi/evidence"
	"humanqa/internal/blob"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/longlog"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

var (
	retentionEvents = flag.Int("retention.events", 600, "events of the log in TestAYearOfRetention")
	retentionPieces = flag.Int("retention.pieces", 100, "pieces of evidence in it")
)

// dieBefore makes the test binary be a sweep of evidence that is killed at a step, given
// as "STEP N": the Nth time that the step is about to be taken.
const dieBefore = "HUMANQA_TEST_SWEEP_DIES_BEFORE"

// survived is the exit code of such a sweep that never came to its step.
const survived = 9

// sweepAndDie does what `humanqa evidence sweep` does, and is killed on the way.
func sweepAndDie(step string) int {
	name, count, _ := strings.Cut(step, " ")
	left, err := strconv.Atoi(count)
	sweep := func(ctx context.Context) error {
		cfg, err := service.ParseConfig(os.Environ())
		if err != nil {
			return err
		}
		core, err := service.Open(ctx, cfg, logging.New(cfg.LogFormat, cfg.LogLevel, os.Stderr))
		if err != nil {
			return err
		}
		files, err := blob.Open(ctx, cfg.EvidenceURL)
		if err != nil {
			return err
		}
		_, err = evidence.Expiry{DB: core.DB, Files: files, Commands: core.Commands, Before: func(step string) error {
			if step == name {
				left--
			}
			if left > 0 {
				return nil
			}
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return err
			}
			select {} // it is on its way
		}}.Sweep(ctx)
		return err
	}
	if err := errors.Join(err, sweep(context.Background())); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err) // the test shows it
	}
	return survived
}

// The places at which sweeps are killed, one a month.
var deathsOfSweeps = []string{
	"lease 1", "event 1", "row 1", "event 3", "row 4", "lease 2", "files 1", "file 1", "file 3", "erased 1",
}

// The kinds of evidence of the long log. Only the first goes.
const (
	goes       = "goes by the account's setting"
	heldByProj = "of a project with a hold"
	heldByJob  = "of a job with a hold"
	heldByAcct = "of an account with a hold"
	noSetting  = "of an account without a setting"
)

func kindOf(i int) string {
	switch {
	case i%10 == 0:
		return heldByProj
	case i%10 == 1:
		return heldByAcct
	case i%10 == 2:
		return noSetting
	case i%50 == 3:
		return heldByJob
	}
	return goes
}

// madePiece is a piece of evidence as the test knows it.
type madePiece struct {
	kind, file string // below the folder of evidence
	ended      time.Time
	size       int64
	digest     [sha256.Size]byte
}

// year is a service with a long log, whose evidence goes month by month.
type year struct {
	*program
	core                   *service.Core
	db                     *sqlx.DB
	project                string
	settled, held, without string // accounts
	settledKey             string
	began                  time.Time
	pieces                 []madePiece
	ledgers                map[string]*longlog.Ledger
	files                  blob.Bucket
	events, months, kills  int
}

// A year of retention, played by the sandbox's clock: each month the sweep is killed at
// another place, and the next one finishes it. Exactly what is due goes, what is held or has
// no setting keeps its bytes, and log, proofs and backup are whole. For a long log:
//
//	go test ./cmd/humanqa -v -timeout 60m -run TestAYearOfRetention -args -torture \
//	    -retention.events 1000000 -retention.pieces 10000
func TestAYearOfRetention(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.start()
	y := &year{program: p, began: time.Now()}
	y.open(s)
	s.stop()
	y.write()
	before := y.onDisk()
	t.Logf("before: %d events, %d pieces, %d bytes of evidence on disk", y.events, len(y.pieces), before)

	worker := y.work()
	kept := p.checkpoint(t)
	for _, at := range deathsOfSweeps {
		y.month()
		y.dies(at)
		y.sweeps()
	}
	for range 2 { // the year is over
		y.month()
		y.sweeps()
	}
	must.NoError(t, y.core.Close(t.Context()))
	must.NoError(t, y.db.Close())
	worker.stop()
	y.remains(p.dir)
	after := y.onDisk()
	t.Logf("after %d months and %d kills: %d bytes of evidence on disk, %d of them went", y.months, y.kills, after, before-after)

	timed := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		t.Logf("%s took %s", what, time.Since(began).Round(time.Millisecond))
	}
	timed("fsck", p.fsck)
	timed("audit verify", func() { p.verifies(t, kept) })
	file := filepath.Join(t.TempDir(), "backup.zip")
	var made backup.Saved
	timed("backup", func() { p.cli(&made, "backup", file) })
	if info, err := os.Stat(file); err != nil || len(made.Missing) > 0 || made.Evidence != y.stay() {
		t.Errorf("the backup is %+v, %v; want %d pieces", made, err, y.stay())
	} else {
		t.Logf("the backup has %d events, %d pieces, %d bytes", made.Events, made.Evidence, info.Size())
	}
	q := newEmbedded(t)
	timed("restore with its checks", func() { q.restore(file, made.Events) })
	y.remains(q.dir)
	timed("fsck of the restored", q.fsck)
	timed("audit verify of the restored", func() { q.verifies(t, kept) })
	restored := q.start()
	y.told(restored)
	restored.stop()
}

// open makes the accounts, the settings and the holds.
func (y *year) open(s *instance) {
	y.t.Helper()
	y.settled, y.settledKey = s.newSandbox(0)
	y.held, _ = s.newSandbox(0)
	y.without, _ = s.newSandbox(0)
	y.project = s.call(201, "POST", "/v1/projects", y.settledKey, map[string]any{"name": "Shop"}).text("projectId")
	for _, id := range []string{y.settled, y.held} {
		s.cli(nil, "evidence", "keep", "--account", id, "--evidence-days", "365", "--by", "olga", "--reason", "the contract says so")
	}
	s.cli(nil, "evidence", "hold", "--account", y.held, "--by", "olga", "--reason", "a lawsuit")
	s.cli(nil, "evidence", "hold", "--project", y.project, "--by", "olga", "--reason", "an audit")
}

// write writes the jobs of the year before, with their evidence.
func (y *year) write() {
	y.t.Helper()
	ctx := y.t.Context()
	began := time.Now()
	y.connect()
	y.ledgers = map[string]*longlog.Ledger{}
	for _, id := range []string{y.settled, y.held, y.without} {
		y.ledgers[id] = longlog.NewLedger(y.core.Log, id, 1000)
		must.NoError(y.t, y.ledgers[id].Reload(ctx))
	}
	jobs := max(*retentionEvents/6, *retentionPieces) // five events of the job, and its debit
	for from := 0; from < jobs; from += 250 {
		y.writeJobs(ctx, from, min(from+250, jobs), jobs)
	}
	must.NoError(y.t, y.db.GetContext(ctx, &y.events, `SELECT count(*) FROM eventlog.events`))
	y.t.Logf("%d events were written in %s", y.events, time.Since(began).Round(time.Millisecond))
	y.disconnect()
}

func (y *year) connect() {
	y.t.Helper()
	cfg, err := service.ParseConfig(y.environ)
	must.NoError(y.t, err)
	y.core, err = service.Open(y.t.Context(), cfg, logging.New(cfg.LogFormat, cfg.LogLevel, y.t.Output()))
	must.NoError(y.t, err)
	y.files, err = blob.Open(y.t.Context(), cfg.EvidenceURL)
	must.NoError(y.t, err)
	y.db = pgtest.NewDB(y.t, y.dsn())
}

func (y *year) disconnect() {
	y.t.Helper()
	must.NoError(y.t, errors.Join(y.db.Close(), y.files.Close(), y.core.Close(y.t.Context())))
}

// writeJobs writes some of the jobs. They ended over the year that is past, one after the
// other, and the last of them five days ago.
func (y *year) writeJobs(ctx context.Context, from, to, all int) {
	y.t.Helper()
	type written struct {
		id    string
		life  longlog.Life
		piece *madePiece
		hold  bool
	}
	var writing errgroup.Group
	writing.SetLimit(32)
	charged := map[string][]string{}
	var batch []written
	for i := from; i < to; i++ {
		w := written{id: uuid.NewString(), life: longlog.Life{
			AccountID: y.settled, Sandbox: true,
			Ended: y.began.Add(-360*24*time.Hour + time.Duration(i)*(355*24*time.Hour/time.Duration(all))),
		}}
		if n := i * *retentionPieces / all; i == 0 || n != (i-1)**retentionPieces/all {
			kind := kindOf(n)
			switch kind {
			case heldByProj:
				w.life.ProjectID = y.project
			case heldByAcct:
				w.life.AccountID = y.held
			case noSetting:
				w.life.AccountID = y.without
			}
			w.hold = kind == heldByJob
			content := []byte(filetest.PNG(strings.Repeat(fmt.Sprintf("picture %d of %s ", n, w.id), 20+n%60)))
			id := uuid.NewString()
			w.life.Picture = evidence.Prefix + id
			w.piece = &madePiece{
				kind: kind, file: filepath.Join(w.life.AccountID, w.id, id), ended: w.life.Ended, size: int64(len(content)), digest: sha256.Sum256(content),
			}
			y.pieces = append(y.pieces, *w.piece)
			writing.Go(func() error { return y.store(ctx, w.life.AccountID, w.id, id, content) })
		}
		charged[w.life.AccountID] = append(charged[w.life.AccountID], w.id)
		batch = append(batch, w)
	}
	must.NoError(y.t, writing.Wait())
	for id, jobs := range charged {
		must.NoError(y.t, y.ledgers[id].Charge(ctx, jobs))
	}
	for _, w := range batch {
		writing.Go(func() error {
			if err := w.life.Write(ctx, y.core.Log, w.id); err != nil || !w.hold {
				return err
			}
			_, err := y.core.Commands.PlaceHold(ctx, service.OperatorCause(w.life.AccountID),
				command.EvidenceSubject{Kind: "job", ID: w.id}, "a complaint", true)
			return err
		})
	}
	must.NoError(y.t, writing.Wait())
}

// store puts a piece into the bucket, with its row.
func (y *year) store(ctx context.Context, accountID, jobID, id string, content []byte) error {
	if err := y.files.Write(ctx, accountID+"/"+jobID+"/"+id, "image/png", nil, bytes.NewReader(content)); err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	_, err := y.db.ExecContext(ctx, `
INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
VALUES ($1, $2, $3, 'ann', $4, 'image/png', $5, now(), now())`, id, accountID, jobID, digest[:], len(content))
	return err
}

// work starts a process that keeps the read models and sweeps nothing, and joins it.
func (y *year) work() *instance {
	y.t.Helper()
	began := time.Now()
	worker := *y.program
	worker.environ = slices.Concat(y.environ, []string{"HUMANQA_ADMIN_ADDR=" + y.addr})
	s := worker.start("--roles", "projector,webhooks,policy")
	y.t.Logf("the service was ready, with the whole log in its read models, after %s", time.Since(began).Round(time.Millisecond))
	y.connect()
	return s
}

// month lets a month pass in all accounts.
func (y *year) month() {
	y.t.Helper()
	y.months++
	var last domain.Position
	for _, id := range []string{y.settled, y.held, y.without} {
		cause := service.OperatorCause(id)
		cause.CommandID, cause.Sandbox = domain.NewCommandID(), true
		moved, err := y.core.Commands.AdvanceClock(y.t.Context(), cause, 30*24*time.Hour)
		must.NoError(y.t, err)
		last = moved.Position
	}
	y.core.WaitVisible(y.t.Context(), last)
}

// dies runs a sweep that is killed at the step, as `kill -9` does.
func (y *year) dies(at string) {
	y.t.Helper()
	cmd := y.command(context.Background())
	cmd.Env = slices.Concat(y.environ, []string{dieBefore + "=" + at})
	sweep := process.Start(y.t, cmd)
	sweep.WaitExit(limitOfCommands())
	var ended *exec.ExitError
	if !errors.As(sweep.Err(), &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		y.t.Fatalf("a sweep was to be killed before %s, and ended with %v: %s", at, sweep.Err(), sweep.Said())
	}
	y.kills++
	// Postgres may still commit what the dead one had sent.
	eventually.True(y.t, "no lease is taken any more", func() bool {
		var others int
		must.NoError(y.t, y.db.GetContext(y.t.Context(), &others, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND state <> 'idle' AND query LIKE '%http_evidence%' AND pid <> pg_backend_pid()`))
		return others == 0
	})
	// The dead one's leases end five minutes later.
	_, err := y.db.ExecContext(y.t.Context(), `UPDATE http_evidence SET taken_until = now() - interval '1 second' WHERE taken_until IS NOT NULL`)
	must.NoError(y.t, err)
}

// sweeps finishes the month: everything that is due is gone, and nothing else.
func (y *year) sweeps() {
	y.t.Helper()
	y.cli(nil, "evidence", "sweep")
	var got struct{ Gone, Erased, Named, Bytes int64 }
	must.NoError(y.t, y.db.GetContext(y.t.Context(), &got, `
SELECT count(*) FILTER (WHERE gone_at IS NOT NULL) AS gone,
       count(*) FILTER (WHERE erased_at IS NOT NULL AND taken_until IS NULL) AS erased,
       (SELECT COALESCE(sum(jsonb_array_length(convert_from(data, 'UTF8')::jsonb -> 'pieces')), 0)
        FROM eventlog.events WHERE type = 'job.evidence_expired') AS named,
       COALESCE(sum(size) FILTER (WHERE gone_at IS NULL), 0) AS bytes
FROM http_evidence`))
	var due, bytesLeft int64
	now := time.Now().Add(time.Duration(y.months) * 30 * 24 * time.Hour)
	for _, piece := range y.pieces {
		if piece.kind == goes && !piece.ended.Add(365*24*time.Hour).After(now) {
			due++
		} else {
			bytesLeft += piece.size
		}
	}
	if got.Gone != due || got.Erased != due || got.Named != due || got.Bytes != bytesLeft {
		y.t.Fatalf("after month %d %+v are gone, want %d, and %d bytes left", y.months, got, due, bytesLeft)
	}
	y.t.Logf("month %d: %d pieces are gone, %d bytes are kept", y.months, due, bytesLeft)
}

// onDisk is the size of all files of evidence.
func (y *year) onDisk() (size int64) {
	y.t.Helper()
	must.NoError(y.t, filepath.WalkDir(filepath.Join(y.dir, "evidence"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, blob.Attributes("")) {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	}))
	return size
}

// stay counts the pieces that are kept for good.
func (y *year) stay() (n int) {
	for _, piece := range y.pieces {
		if piece.kind != goes {
			n++
		}
	}
	return n
}

// remains holds the files of a data directory against what was written.
func (y *year) remains(dir string) {
	y.t.Helper()
	kinds := map[string]int{}
	for _, piece := range y.pieces {
		kinds[piece.kind]++
		content, err := os.ReadFile(filepath.Join(dir, "evidence", piece.file))
		switch {
		case piece.kind == goes && !errors.Is(err, fs.ErrNotExist):
			y.t.Errorf("the file %s is there: %v", piece.file, err)
		case piece.kind != goes && (err != nil || sha256.Sum256(content) != piece.digest):
			y.t.Errorf("evidence %s is not what it was: %v", piece.kind, err)
		}
	}
	for _, kind := range []string{goes, heldByProj, heldByJob, heldByAcct, noSetting} {
		if kinds[kind] == 0 {
			y.t.Errorf("no evidence %s was made", kind)
		}
	}
	y.t.Logf("pieces by kind: %v", kinds)
}

// told asks the service for evidence that is gone, and for what is held, by their reports.
func (y *year) told(s *instance) {
	y.t.Helper()
	for _, want := range []struct {
		kind   string
		status int
		listed int
	}{{goes, 410, 1}, {heldByProj, 200, 0}, {heldByJob, 200, 0}} {
		for _, piece := range y.pieces {
			if piece.kind != want.kind {
				continue
			}
			report := s.call(200, "GET", "/v1/jobs/"+filepath.Base(filepath.Dir(piece.file))+"/report", y.settledKey, nil)
			var shown struct {
				Items        []struct{ ScreenshotURL string }
				NoLongerKept []struct{ Size int64 }
			}
			must.NoError(y.t, json.Unmarshal(report.body, &shown))
			if len(shown.Items) != 1 || len(shown.NoLongerKept) != want.listed || want.listed == 1 && shown.NoLongerKept[0].Size != piece.size {
				y.t.Errorf("the report with evidence %s is %s", piece.kind, report.body)
				break
			}
			_, path, _ := strings.Cut(strings.TrimPrefix(shown.Items[0].ScreenshotURL, "http://"), "/")
			s.call(want.status, "GET", "/"+path, "", nil)
			break
		}
	}
}
