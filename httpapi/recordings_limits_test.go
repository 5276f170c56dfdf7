package httpapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/v1/checkers"
	"humanqa/internal/testing/must"
)

func TestARecordingsLimits(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	s.Evidence.RecordingLimit = 9 << 20
	w := s.working(key)
	one, two := w.recording(), w.recording()
	w.sends(one, 0, make([]byte, evidence.MaxRecordingPart+1)).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	largest := append(bytes.Clone(aFilm), make([]byte, evidence.MaxRecordingPart-len(aFilm))...)
	w.sends(one, 0, largest).want(http.StatusOK)
	// Both together are the claim's.
	w.sends(two, 0, largest[:1<<20]).want(http.StatusOK)
	w.sends(two, 1<<20, []byte("x")).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	w.sends(one, evidence.MaxRecordingPart, []byte("x")).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	for range 30 - 2 {
		w.recording()
	}
	w.call("POST", "/recordings", "").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, w.sends(one, -1, nil).paths(), []string{checkers.UploadOffsetHeader})
	// Claimed again, it is the same job and the same checker. Another one has room.
	w.call("POST", "/release", "").want(http.StatusOK)
	again := s.claims(w.checker, w.jobID)
	again.call("POST", "/recordings", "").refused(http.StatusConflict, domain.CodeConflict)
	s.set(`DELETE FROM http_recordings WHERE size = 0 AND job_id = $1`, w.jobID)
	again.sends(again.recording(), 0, aFilm).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	again.call("POST", "/release", "").want(http.StatusOK)
	other := s.claims(s.checker(), w.jobID)
	other.sends(other.recording(), 0, aFilm).want(http.StatusOK)
}

// Whatever job it is, a checker records so much in a day.
func TestACheckersRecordingsOfADayAreBounded(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	account, key := s.account(100)
	s.Evidence.RecordingLimit = int64(len(aFilm))
	checker := s.checker()
	record := func() (w *work, id string) {
		t.Helper()
		w = s.claims(checker, s.submittedWith(key, checklistOf(1)))
		return w, w.recording()
	}
	for range 8 {
		w, id := record()
		w.sends(id, 0, aFilm).want(http.StatusOK)
		w.call("POST", "/release", "").want(http.StatusOK)
	}
	w, id := record()
	w.sends(id, 0, aFilm).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	s.set(`UPDATE http_recordings SET begun_at = now() - interval '25 hours' WHERE account_id = $1 AND job_id <> $2`, account, w.jobID)
	w.sends(id, 0, aFilm).want(http.StatusOK)
}

// heldFiles holds what is written until it is let go.
type heldFiles struct {
	evidence.Files
	begun, letGo chan struct{}
}

func (h *heldFiles) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	h.begun <- struct{}{}
	select {
	case <-h.letGo:
	case <-ctx.Done():
	}
	return h.Files.Write(ctx, key, contentType, about, content)
}

// A part counts from before its file is written, whether or not it will be the
// recording's.
func TestPartsOnTheirWayCount(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	s.Evidence.RecordingLimit = int64(len(aFilm)) + 10
	held := &heldFiles{Files: s.Evidence.Files, begun: make(chan struct{}, 8), letGo: make(chan struct{})}
	s.Evidence.Files = held
	w := s.working(key)
	id := w.recording()
	answered := make(chan int)
	go func() { answered <- w.sends(id, 0, aFilm).Code }()
	<-held.begun
	w.sends(id, 0, aFilm).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	close(held.letGo)
	equal(t, <-answered, http.StatusOK)
}

// fullFiles are on a disk that is as full as it says.
type fullFiles struct {
	evidence.Files
	free, total int64
}

func (f *fullFiles) Room() (free, total int64, err error) { return f.free, f.total, nil }

// A disk that is nearly full takes no more of recordings, and makes no file of one;
// pictures and verdicts go on.
func TestANearlyFullDiskRefusesRecordingsFirst(t *testing.T) {
	t.Parallel()
	s := own(t)
	account, key := s.account(100)
	good := s.Evidence.Files
	disk := &fullFiles{Files: good, total: 100 << 30}
	s.Evidence.Files = disk
	w := s.working(key)
	id := w.recording()
	disk.free = 1<<30 + 1000
	w.sends(id, 0, aFilm[:1000]).want(http.StatusOK)
	disk.free -= 1000
	full := w.sends(id, 1000, aFilm[1000:])
	body := full.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	equal(t, []any{body["error"], full.Header().Get("Retry-After")},
		[]any{"the service's disk is nearly full: it takes no recordings for now", "60"})
	equal(t, s.sizeOf(account), 2)
	equal(t, s.visit(w.shown(aPNG)).Body.String(), aPNG)
	w.call("POST", "/recordings/"+id+"/finish", "").want(http.StatusOK)
	s.assembles(0)
	equal(t, len(s.attached()), 0)
	// A small disk keeps a twentieth.
	disk.total, disk.free = 1<<30, 1<<30/20+1000
	s.assembles(2 * time.Minute)
	equal(t, len(s.attached()), 1)
	w.checks(passes).completes("Fine.")
	if film, _ := w.seen(key); len(film) == 0 {
		t.Error("there is no recording")
	}
}

func (s *service) set(query string, args ...any) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), query, args...)
	must.NoError(s.t, err)
}

// sizeOf counts the files of an account where evidence is kept.
func (s *service) sizeOf(account string) (files int) {
	s.t.Helper()
	err := filepath.WalkDir(filepath.Join(s.parts.Bucket, account), func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	})
	must.NoError(s.t, err)
	return files
}

// Of parts that come for one place at once, one is the recording's, and the others
// take no room.
func TestOnePartOfManyAtOncePlaceIsTaken(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	account, key := s.account(100)
	w := s.working(key)
	id := w.recording()
	w.sends(id, 0, aFilm[:500]).want(http.StatusOK)
	codes := make([]int, 6)
	held := &heldFiles{Files: s.Evidence.Files, begun: make(chan struct{}, 8), letGo: make(chan struct{})}
	s.Evidence.Files = held
	var senders sync.WaitGroup
	for n := range codes {
		senders.Go(func() { codes[n] = w.sends(id, 500, bytes.Repeat([]byte{byte(n)}, 100+n)).Code })
	}
	for range codes {
		<-held.begun
	}
	close(held.letGo)
	senders.Wait()
	won := -1
	for n, code := range codes {
		switch {
		case code == http.StatusOK && won < 0:
			won = n
		case code != http.StatusConflict:
			t.Errorf("the answers are %v", codes)
		}
	}
	var parts []struct {
		Key  string `db:"key"`
		Size int64  `db:"size"`
	}
	must.NoError(t, s.db.SelectContext(t.Context(), &parts, `
		SELECT account_id || '/' || job_id || '/' || id AS key, size
		FROM http_recording_parts
		WHERE recording_id = $1 AND stored_at IS NOT NULL
		ORDER BY at`, id))
	var all []byte
	for _, p := range parts {
		part, err := s.Evidence.Files.Read(t.Context(), p.Key, 0, p.Size)
		must.NoError(t, err)
		content, err := io.ReadAll(part)
		must.NoError(t, errors.Join(err, part.Close()))
		all = append(all, content...)
	}
	if !bytes.Equal(all, append(bytes.Clone(aFilm[:500]), bytes.Repeat([]byte{byte(won)}, 100+won)...)) {
		t.Errorf("%d won, and %d bytes are there", won, len(all))
	}
	var rows int
	must.NoError(t, s.db.GetContext(t.Context(), &rows, `SELECT count(*) FROM http_recording_parts WHERE recording_id = $1`, id))
	equal(t, []int{rows, s.sizeOf(account)}, []int{2, 4}) // a file has another beside it
}
