package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"golang.org/x/sync/errgroup"

	"humanqa/internal/pgpool"
	"humanqa/internal/wholefile"
)

// atOnce bounds the files of a bucket that one check or copy looks at in parallel. A bucket
// elsewhere takes tens of milliseconds for each.
const atOnce = 16

// inParallel ends with the first error.
func inParallel(ctx context.Context, files iter.Seq[StoredFile], do func(context.Context, StoredFile) error) error {
	looking, ctx := errgroup.WithContext(ctx)
	looking.SetLimit(atOnce)
	for f := range files {
		if ctx.Err() != nil {
			break
		}
		looking.Go(func() error { return do(ctx, f) })
	}
	return looking.Wait()
}

// everyFile is inParallel for all files that rows name.
func everyFile(ctx context.Context, q sqlx.QueryerContext, do func(context.Context, StoredFile) error) error {
	var listed error
	err := inParallel(ctx, func(yield func(StoredFile) bool) {
		listed = StoredFiles(ctx, q, func(f StoredFile) error {
			if !yield(f) {
				return context.Canceled // an error that inParallel gives
			}
			return nil
		})
	}, do)
	if err != nil {
		return err
	}
	return listed
}

// isThere says that the file is in the bucket, and whole.
func isThere(ctx context.Context, in Files, f StoredFile) (bool, error) {
	size, err := in.Size(ctx, f.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && size == f.Size, err
}

// Missing lists the files that rows name and that are not in the bucket, or not whole. The
// file at notes says how far a look came: one that was interrupted goes on there, and looks
// once more for the files that were missing. Rows that came behind it wait for the next look.
func Missing(ctx context.Context, q sqlx.QueryerContext, in Files, notes, bucketURL string) (lost []StoredFile, err error) {
	from := readPlace(notes, bucketURL)
	place, page, mu := from, []StoredFile{}, sync.Mutex{}
	place.Lost = slices.Clone(from.Lost) // until the look is over: it may be interrupted again
	look := func() error {
		err := inParallel(ctx, slices.Values(page), func(ctx context.Context, f StoredFile) error {
			there, err := isThere(ctx, in, f)
			if err == nil && !there {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, f)
				if f.Key > from.Passed {
					place.Lost = append(place.Lost, f.Key)
				}
			}
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		place.Passed, page = max(place.Passed, page[len(page)-1].Key), page[:0]
		return nil
	}
	err = StoredFiles(ctx, q, func(f StoredFile) error {
		if f.Key <= from.Passed && !slices.Contains(from.Lost, f.Key) {
			return nil
		}
		if page = append(page, f); len(page) < noteEvery {
			return nil
		}
		if err := look(); err != nil {
			return err
		}
		return place.write(notes)
	})
	if err == nil {
		err = look()
	}
	if err == nil {
		err = os.RemoveAll(notes)
	}
	return lost, err
}

const (
	// noteEvery is how many files are looked for between two notes of the place.
	noteEvery = 500
	// placeLasts is how long an interrupted look can go on.
	placeLasts = 24 * time.Hour
)

// place is how far a look for files came.
type place struct {
	Bucket string    `json:"bucket"`
	Began  time.Time `json:"began"`
	Passed string    `json:"passed"` // the key of the last file
	Lost   []string  `json:"lost"`   // the keys before it that were missing
}

// readPlace begins anew where no look of today at that bucket was interrupted.
func readPlace(notes, bucketURL string) (p place) {
	raw, err := os.ReadFile(notes)
	if err != nil || json.Unmarshal(raw, &p) != nil || p.Bucket != bucketURL || time.Since(p.Began) > placeLasts {
		return place{Bucket: bucketURL, Began: time.Now()}
	}
	return p
}

func (p place) write(notes string) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return wholefile.Write(notes, raw, 0o600)
}

// Copied is the result of a copy.
type Copied struct {
	Files   int      `json:"files"` // that were copied now
	Bytes   int64    `json:"bytes"`
	There   int      `json:"there"`   // that were there already
	Lost    []string `json:"lost"`    // keys of files that are not where they were
	Removed int      `json:"removed"` // from the new place: files that no row names any more
}

// Copy copies every file that a row names to another bucket. A repeat copies the rest. It
// removes what no row names any more: the service may have erased it meanwhile. Files of
// accounts that this database does not know are another installation's, and stay.
func Copy(ctx context.Context, db *sqlx.DB, from, to Files) (out Copied, err error) {
	out.Lost = []string{}
	var mu sync.Mutex
	err = everyFile(ctx, db, func(ctx context.Context, f StoredFile) error {
		there, err := isThere(ctx, to, f)
		if err != nil {
			return err
		}
		lost := false
		if !there {
			if lost, err = copyFile(ctx, from, to, f); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case there:
			out.There++
		case lost:
			out.Lost = append(out.Lost, f.Key)
		default:
			out.Files, out.Bytes = out.Files+1, out.Bytes+f.Size
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	out.Removed, err = removeUnnamed(ctx, db, to)
	return out, err
}

func copyFile(ctx context.Context, from, to Files, f StoredFile) (lost bool, err error) {
	if there, err := isThere(ctx, from, f); err != nil || !there {
		return !there, err
	}
	content, err := from.Read(ctx, f.Key, 0, f.Size)
	if err != nil {
		return false, err
	}
	defer func() { _ = content.Close() }() // it is only read
	about := map[string]string{"account": f.AccountID, "job": f.JobID}
	if err := to.Write(ctx, f.Key, f.ContentType, about, content); err != nil {
		return false, err
	}
	if whole, err := isThere(ctx, to, f); err != nil || !whole {
		return false, errors.Join(fmt.Errorf("%s did not arrive whole: run the copy again", f.Key), err)
	}
	return false, nil
}

const fileNamedSQL = `
SELECT EXISTS (
    SELECT FROM http_evidence
    WHERE id = $1
      AND gone_at IS NULL
    UNION ALL
    SELECT FROM http_recording_parts
    WHERE id = $1)
OR NOT EXISTS (
    SELECT FROM vault.data_keys
    WHERE account_id = $2)`

// removeUnnamed passes over keys that are not of our form: the bucket may have other things.
// The row of an account's data key outlives the account.
func removeUnnamed(ctx context.Context, db *sqlx.DB, in Files) (n int, err error) {
	err = in.Each(ctx, func(key string) error {
		of := strings.Split(key, "/")
		if len(of) != 3 || slices.ContainsFunc(of, func(id string) bool { return uuid.Validate(id) != nil }) {
			return nil
		}
		named, _, err := pgpool.Find[bool](ctx, db, "the row of "+key, fileNamedSQL, of[2], of[0])
		if err != nil || named {
			return err
		}
		n++
		return in.Delete(ctx, key)
	})
	return n, err
}
