package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"humanqa/internal/backoff"
	"humanqa/internal/datadir"
	"humanqa/internal/testing/pgimage"
	"humanqa/internal/testing/scratch"
	"humanqa/migrations"
)

const (
	imageAge  = 7 * 24 * time.Hour // an image that nobody used for longer is removed
	imageWait = 20 * time.Millisecond
)

// image is the path of the image: a stopped cluster whose database is migrated. The first
// binary makes it. It fails where no image can be kept, or made; a binary without an image
// makes its own cluster, and finds what is wrong there. Its name has all that shapes it.
//
// The images lie in one folder beside Go's build cache. Its lock is held while one is looked
// for, made or removed, so that binaries which start together make it once.
var image = sync.OnceValues(func() (path string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	folder, err := imageFolder()
	if err != nil {
		return "", err
	}
	kind, err := pgimage.Kind(ctx)
	if err != nil {
		return "", err
	}
	schema, err := schemaHash()
	if err != nil {
		return "", err
	}
	release, err := lockImages(ctx, folder)
	if err != nil {
		return "", err
	}
	defer release()
	path = filepath.Join(folder, kind+"-"+schema)
	now := time.Now()
	err = os.Chtimes(path, now, now) // it is used
	if errors.Is(err, fs.ErrNotExist) {
		err = makeImage(ctx, path)
	}
	sweepImages(folder)
	return path, err
})

// imageFolder is private: Postgres believes the files of its cluster.
func imageFolder() (string, error) {
	cache := os.Getenv("GOCACHE")
	if !filepath.IsAbs(cache) {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		cache = filepath.Join(user, "go-build")
	}
	folder := filepath.Join(filepath.Dir(cache), "humanqa-test")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return "", fmt.Errorf("%s is not this user's private folder", folder)
	}
	return folder, nil
}

func lockImages(ctx context.Context, folder string) (release func(), err error) {
	for {
		release, err = datadir.Lock(folder)
		if !errors.Is(err, datadir.ErrInUse) {
			return release, err
		}
		if err := backoff.Wait(ctx, imageWait); err != nil {
			return nil, fmt.Errorf("wait for the image of a cluster: %w", err)
		}
	}
}

func makeImage(ctx context.Context, path string) (err error) {
	dir, remove, err := scratch.Make(scratch.Memory())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	pg, err := startNew(ctx, dir)
	if err != nil {
		return err
	}
	return errors.Join(pgimage.Save(ctx, pg, path), pg.Stop(ctx))
}

// sweepImages removes images that are old, and half-made ones, whose maker is dead: its lock
// is held here.
func sweepImages(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // the next sweep may succeed
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && (time.Since(info.ModTime()) > imageAge || strings.HasSuffix(e.Name(), ".new")) {
			_ = os.RemoveAll(filepath.Join(folder, e.Name())) // the next sweep removes the rest
		}
	}
}

// schemaHash names the migrations: databases that they have made are alike.
func schemaHash() (string, error) {
	sum := sha256.New()
	names, err := fs.Glob(migrations.Files, "*.sql")
	for _, name := range names {
		content, failed := migrations.Files.ReadFile(name)
		err = errors.Join(err, failed)
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), err
}
