package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node"
	"humanqa/internal/archive"
	"humanqa/internal/blob"
	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/migrations"
	"humanqa/projections"
)

// restoreMark is in a data directory from before the first write of a restore
// until after its last: what is there in between is nobody's data.
const restoreMark = "RESTORE-UNFINISHED.txt"

type restoreCmd struct {
	File string `arg:"" type:"path" help:"A file that humanqa backup wrote."`
}

// restored is what restore answers.
type restored struct {
	checked

	DataDir string    `json:"dataDir"`
	Made    time.Time `json:"made"` // when the backup was
}

// Run reads the whole backup before it writes anything, and checks every
// invariant on what it has made of it.
func (c *restoreCmd) Run(ctx context.Context, a *app) error {
	if err := embeddedOnly(a.cfg); err != nil {
		return err
	}
	from, err := archive.Open(c.File)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it is only read
	if err := fitting(from.Manifest, a.cfg); err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := becomeOwner(a.cfg, a.log); err != nil {
		return err
	}
	if err := restore(ctx, a.cfg, from, quiet(a.log)); err != nil {
		return fmt.Errorf("restore %s: %w", c.File, err)
	}
	err = a.withCore(ctx, func(ctx context.Context, core *core) error {
		models, err := ofThisVersion(ctx, core.db)
		if err != nil {
			return err
		}
		out, err := fsckModels(ctx, core, a.log, untold, models)
		if err != nil {
			return err
		}
		return a.printChecked(out, restored{checked: out, DataDir: a.cfg.DataDir, Made: from.Made},
			fmt.Sprintf("%s is as it was at %s: ", a.cfg.DataDir, from.Made.Format(time.RFC3339)))
	})
	if err != nil {
		return fmt.Errorf("%s is restored, but: %w", a.cfg.DataDir, err)
	}
	return nil
}

// fitting refuses a backup that this binary, set up as it is, would make only
// half of.
func fitting(m archive.Manifest, cfg Config) error {
	newest, err := migrations.Newest()
	_, directory := blob.Path(cfg.EvidenceURL)
	switch {
	case err != nil:
		return err
	case m.Schema > newest:
		return fmt.Errorf("it is a newer humanqa's, %s: restore it with that one", m.By)
	case m.EvidenceAt != "" && directory:
		return fmt.Errorf("its evidence is in %s: set HUMANQA_EVIDENCE_URL to that", m.EvidenceAt)
	case m.EvidenceAt == "" && !directory:
		return errors.New("it holds the evidence, but HUMANQA_EVIDENCE_URL names no directory to put it into: unset it")
	}
	return nil
}

// wholeRestore refuses a data directory whose restore was cut off.
func wholeRestore(cfg Config) error {
	if isHalf(cfg) {
		return fmt.Errorf("a restore into %s was cut off: run humanqa restore again, or remove the directory", cfg.DataDir)
	}
	return nil
}

func isHalf(cfg Config) bool {
	_, err := os.Lstat(filepath.Join(cfg.DataDir, restoreMark))
	return err == nil
}

// restore makes the data directory. A crash at any point leaves one that only
// restore itself goes on with.
func restore(ctx context.Context, cfg Config, from *archive.Reader, log logrus.FieldLogger) error {
	if err := vacant(cfg); err != nil {
		return err
	}
	release, err := datadir.Lock(cfg.DataDir)
	if err != nil {
		return err
	}
	again := isHalf(cfg)
	if err = vacant(cfg); err == nil { // it may be another's by now
		err = writeDurably(filepath.Join(cfg.DataDir, restoreMark), "This is half a restored backup. Run humanqa restore again, or remove the directory.\n")
	}
	if err != nil {
		release()
		return err
	}
	server, err := startPostgres(ctx, cfg, log, release)
	if err != nil {
		return err
	}
	err = fill(ctx, cfg, from, server, again)
	if err = errors.Join(err, server.stops.run(ctx)); err != nil {
		return err
	}
	unix.Sync() // hundreds of files of evidence, all at once
	return os.Remove(filepath.Join(cfg.DataDir, restoreMark))
}

// vacant refuses to write over anything but the half of an earlier restore.
func vacant(cfg Config) error {
	if isHalf(cfg) {
		return nil
	}
	evidence, _ := blob.Path(cfg.EvidenceURL)
	for _, dir := range []string{cfg.DataDir, evidence} {
		entries, err := os.ReadDir(dir)
		if err != nil && dir != "" && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if e.Name() != datadir.LockFile {
				return fmt.Errorf("%s is not empty, and nothing is written over: set HUMANQA_DATA_DIR to an empty or a new directory", dir)
			}
		}
	}
	if _, err := os.Lstat(cfg.MasterKeyFile); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is a keyset %s, and nothing is written over: move it away, or unset HUMANQA_MASTER_KEY_FILE", cfg.MasterKeyFile)
	}
	return nil
}

// fill writes what the archive holds; again overwrites what an earlier one
// left.
func fill(ctx context.Context, cfg Config, from *archive.Reader, to *postgres, again bool) error {
	if again {
		if err := to.Empty(ctx); err != nil {
			return err
		}
	}
	if err := from.Read(backupDatabase, func(r io.Reader) error { return to.Load(ctx, r) }); err != nil {
		return err
	}
	if err := sameLog(ctx, to, from.Events); err != nil {
		return err
	}
	evidence, _ := blob.Path(cfg.EvidenceURL)
	for _, e := range from.Entries {
		file := ""
		switch key, isEvidence := strings.CutPrefix(e.Name, backupEvidence+"/"); {
		case e.Name == backupDatabase:
			continue
		case e.Name == backupKeyset:
			file = cfg.MasterKeyFile
		case isEvidence:
			file = filepath.Join(evidence, filepath.FromSlash(key))
		default:
			return fmt.Errorf("it holds %s, which this humanqa does not know", e.Name)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := from.Read(e.Name, func(r io.Reader) error { return writeNew(file, r) }); err != nil {
			return err
		}
	}
	return nil
}

// sameLog holds what was loaded against what the archive says it has.
func sameLog(ctx context.Context, to *postgres, events int64) error {
	db, err := pgpool.Open(ctx, to.DSN(pgdev.Database))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it only reads
	got, _, err := node.Head(ctx, db)
	if err == nil && got != events {
		err = fmt.Errorf("its log has %d events, its manifest says %d", got, events)
	}
	return err
}

// writeNew writes a private file, and the directories that it needs.
func writeNew(file string, from io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// writeDurably is writeNew for what must be on the disk before what follows.
func writeDurably(file, text string) error {
	if err := writeNew(file, strings.NewReader(text)); err != nil {
		return err
	}
	unix.Sync()
	return nil
}

// ofThisVersion names the read models whose rows this binary folds. Those of an
// older one's backup the next start builds anew.
func ofThisVersion(ctx context.Context, db *sqlx.DB) (names []string, err error) {
	listed, err := consumer.List(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, c := range projections.All() {
		if p, ok := c.(consumer.Projector); ok && slices.ContainsFunc(listed, func(s consumer.Status) bool {
			return s.Serving && s.Name == p.Name() && s.Version == p.Version()
		}) {
			names = append(names, p.Name())
		}
	}
	return names, nil
}
