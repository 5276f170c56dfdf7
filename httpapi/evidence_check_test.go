package httpapi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"humanqa/httpapi/evidence"
	"humanqa/internal/blob"
	"humanqa/internal/testing/must"
)

// The second look goes on behind the files of the first, and looks once more for those that
// were missing. A whole look begins the next one anew.
func TestACheckOfEvidenceThatWasInterruptedGoesOnWhereItEnded(t *testing.T) {
	t.Parallel()
	s := own(t)
	account, job := uuid.NewString(), uuid.NewString()
	folder := filepath.Join(t.TempDir(), "bucket")
	files := filepath.Join(folder, account, job)
	must.NoError(t, os.MkdirAll(files, 0o700))
	file := func(n int) string { return filepath.Join(files, fmt.Sprintf("00000000-0000-0000-0000-%012d", n)) }
	for n := range 1200 {
		must.NoError(t, os.WriteFile(file(n), []byte("x"), 0o600))
	}
	_, err := s.db.ExecContext(t.Context(), `
		INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
		SELECT ('00000000-0000-0000-0000-' || lpad(n::text, 12, '0'))::uuid, $1, $2, '', n::text::bytea, 'image/png', 1, now(), now()
		FROM generate_series(0, 1199) AS n`, account, job)
	must.NoError(t, err)
	url, notes := blob.Directory(folder), filepath.Join(t.TempDir(), "notes")
	look := func() (lost []int, err error) {
		in, err := blob.Open(t.Context(), url)
		must.NoError(t, err)
		defer func() { _ = in.Close() }() // it is only read
		missing, err := evidence.Missing(t.Context(), s.db, in, notes, url)
		for _, f := range missing {
			var n int
			_, scanErr := fmt.Sscanf(filepath.Base(f.Key), "00000000-0000-0000-0000-%d", &n)
			must.NoError(t, scanErr)
			lost = append(lost, n)
		}
		slices.Sort(lost)
		return lost, err
	}
	lose := func(n int) { must.NoError(t, os.Remove(file(n))) }
	lose(3)
	lose(4)
	lose(700)
	must.NoError(t, os.Symlink(filepath.Base(file(700)), file(700))) // a circle: no answer

	if _, err := look(); err == nil {
		t.Fatal("the first look was not interrupted")
	}
	must.NoError(t, os.WriteFile(file(4), []byte("x"), 0o600))
	lose(5) // which was there
	lose(700)
	lose(1100)
	for _, want := range [][]int{{3, 700, 1100}, {3, 5, 700, 1100}} {
		if lost, err := look(); err != nil || !slices.Equal(lost, want) {
			t.Errorf("lost are %v, %v, want %v", lost, err, want)
		}
	}

	// One that is interrupted twice forgets none, however many are lost.
	want := []int{700, 1100}
	for n := range 600 {
		must.NoError(t, os.RemoveAll(file(n)))
		want = append(want, n)
	}
	slices.Sort(want)
	lose(1000)
	must.NoError(t, os.Symlink(filepath.Base(file(1000)), file(1000)))
	for range 2 {
		if _, err := look(); err == nil {
			t.Fatal("the look was not interrupted")
		}
	}
	lose(1000)
	must.NoError(t, os.WriteFile(file(1000), []byte("x"), 0o600))
	if lost, err := look(); err != nil || !slices.Equal(lost, want) {
		t.Errorf("lost are %d, %v, want %d", len(lost), err, len(want))
	}
}
