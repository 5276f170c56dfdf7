package backup

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

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"humanqa/cmd/humanqa/service"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/node/store"
	"humanqa/internal/archive"
	"humanqa/internal/blob"
	"humanqa/internal/datadir"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/migrations"
	"humanqa/projections"
)

// Fits refuses a backup that this binary, set up as it is, would make only
// half of.
func Fits(m archive.Manifest, cfg service.Config) error {
	newest, err := migrations.Newest()
	keyset := slices.ContainsFunc(m.Entries, func(e archive.Entry) bool { return e.Name == keysetEntry })
	_, directory := blob.Path(cfg.EvidenceURL)
	switch {
	case err != nil:
		return err
	case m.Schema > newest:
		return fmt.Errorf("it is a newer humanqa's, %s: restore it with that one", m.By)
	case keyset && cfg.MasterKeyCommand != "":
		return errors.New("it holds its keyset, and HUMANQA_MASTER_KEY_COMMAND gives another: unset it, and move the keyset later (docs/keys.md)")
	case !keyset && cfg.MasterKeyCommand == "":
		return errors.New("its keyset is not in it: set HUMANQA_MASTER_KEY_COMMAND to the program that gives it")
	case m.EvidenceAt != "" && directory:
		return fmt.Errorf("its evidence is in %s: set HUMANQA_EVIDENCE_URL to that", m.EvidenceAt)
	case m.EvidenceAt == "" && !directory:
		return errors.New("it holds the evidence, but HUMANQA_EVIDENCE_URL names no directory to put it into: unset it")
	}
	return nil
}

// Restore makes the data directory. After a crash at any point only restore itself can
// continue with it.
func Restore(ctx context.Context, cfg service.Config, from *archive.Reader, log logrus.FieldLogger) error {
	if err := vacant(cfg); err != nil {
		return err
	}
	release, err := datadir.Lock(cfg.DataDir)
	if err != nil {
		return err
	}
	again := service.IsHalfRestored(cfg)
	if err = vacant(cfg); err == nil { // another process may have taken it by now
		err = writeNew(filepath.Join(cfg.DataDir, service.RestoreMark),
			strings.NewReader("This is half a restored backup. Run humanqa restore again, or remove the directory.\n"))
		unix.Sync() // the mark is on the disk before the next step
	}
	if err != nil {
		release()
		return err
	}
	server, err := service.StartPostgres(ctx, cfg, log, release)
	if err != nil {
		return err
	}
	err = fill(ctx, cfg, from, server, again)
	if err = errors.Join(err, server.Close(ctx)); err != nil {
		return err
	}
	unix.Sync() // hundreds of files of evidence, all at once
	return os.Remove(filepath.Join(cfg.DataDir, service.RestoreMark))
}

// vacant refuses to write over any data but those of an unfinished restore.
func vacant(cfg service.Config) error {
	if service.IsHalfRestored(cfg) {
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
		return fmt.Errorf("there is a keyset %s, and nothing is written over: move it away, or unset HUMANQA_MASTER_KEY_FILE",
			cfg.MasterKeyFile)
	}
	return nil
}

// fill writes the content of the archive; again overwrites the rest of an earlier
// restore.
func fill(ctx context.Context, cfg service.Config, from *archive.Reader, to *service.Postgres, again bool) error {
	if again {
		if err := to.Empty(ctx); err != nil {
			return err
		}
	}
	if err := from.Read(databaseEntry, func(r io.Reader) error { return to.Load(ctx, r) }); err != nil {
		return err
	}
	if err := sameLog(ctx, to, from.Events); err != nil {
		return err
	}
	evidence, _ := blob.Path(cfg.EvidenceURL)
	for _, e := range from.Entries {
		file := ""
		switch key, isEvidence := strings.CutPrefix(e.Name, evidenceEntry+"/"); {
		case e.Name == databaseEntry:
			continue
		case e.Name == keysetEntry:
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

// sameLog compares the loaded log with the archive's count of events.
func sameLog(ctx context.Context, to *service.Postgres, events int64) error {
	db, err := pgpool.Open(ctx, to.DSN(pgdev.Database))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // it only reads
	got, err := store.Head(ctx, db)
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

// CurrentModels names the read models whose rows this binary folds. Those of an
// older one's backup the next start builds anew.
func CurrentModels(ctx context.Context, db *sqlx.DB) (names []string, err error) {
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
