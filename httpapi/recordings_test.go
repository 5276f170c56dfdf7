package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/v1/checkers"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/webmtest"
	"humanqa/internal/vault"
	"humanqa/internal/webm"
)

var aFilm = webmtest.Film{Seconds: 6, Frame: 300}.Bytes()

func (w *work) recording() (id string) {
	w.s.t.Helper()
	id, _ = w.call("POST", "/recordings", `{"startedMsAgo":1500}`).want(http.StatusCreated)["recordingId"].(string)
	return id
}

func (w *work) sends(id string, at int, part []byte) result {
	w.s.t.Helper()
	return w.s.call(w.checker, "PATCH", "/v1/checker/jobs/"+w.jobID+"/recordings/"+id, string(part),
		wire.ClaimTokenHeader, w.token, checkers.UploadOffsetHeader, strconv.Itoa(at))
}

// sendsAll sends the film in three parts.
func (w *work) sendsAll(id string, film []byte) {
	w.s.t.Helper()
	for at, size := 0, len(film)/3+1; at < len(film); at += size {
		w.sends(id, at, film[at:min(at+size, len(film))]).want(http.StatusOK)
	}
}

// assembles does what is due of recordings, as if so much time had passed.
func (s *service) assembles(later time.Duration) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), `UPDATE http_recordings SET due_at = due_at - make_interval(secs => $1)`, later.Seconds())
	must.NoError(s.t, err)
	for s.Evidence.AssembleNext(s.t.Context()) {
	}
	s.visible(s.log.Head(), nil)
}

// attached are the recordings that the log knows.
func (s *service) attached() (all []job.Recording) {
	for _, e := range s.events() {
		if a, ok := e.Event.(*job.RecordingAttached); ok {
			all = append(all, a.Recording)
		}
	}
	return all
}

func (w *work) seen(key string) (film []byte, report map[string]any) {
	w.s.t.Helper()
	report = w.s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)
	link, _ := report["recordingUrl"].(string)
	r := w.s.visit(link)
	equal(w.s.t, r.Code, http.StatusOK)
	return r.Body.Bytes(), report
}

// A recording comes in parts, goes on where the service is, becomes a file that
// can be sought, and is what the report leads to.
func TestARecordingBecomesTheReports(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	w := s.working(key)
	begun := w.call("POST", "/recordings", `{"startedMsAgo":1500}`)
	body := begun.want(http.StatusCreated)
	id, _ := body["recordingId"].(string)
	equal(t, begun.Header().Get(checkers.UploadOffsetHeader), "0")
	started, err := time.Parse(time.RFC3339, fmt.Sprint(body["startedAt"]))
	if err != nil || time.Since(started) < 1500*time.Millisecond || time.Since(started) > time.Minute {
		t.Errorf("it started at %v", body["startedAt"])
	}
	with(t, body, map[string]any{"jobId": w.jobID, "status": "open", "offset": 0.0, "partLimit": float64(8 << 20), "limit": float64(1 << 30)})

	first := w.sends(id, 0, aFilm[:1000])
	equal(t, first.want(http.StatusOK)["offset"], any(1000.0))
	equal(t, first.Header().Get(checkers.UploadOffsetHeader), "1000")
	// The answer was lost, a part is missing, a part comes before it: each is told
	// where to go on.
	for _, offset := range []int{0, 999, 1001, 5000} {
		r := w.sends(id, offset, aFilm[:1000])
		equal(t, r.refused(http.StatusConflict, domain.CodeConflict)["uploadOffset"], any(1000.0))
	}
	w.sends(id, 1000, nil).want(http.StatusOK) // a sign of life
	for _, method := range []string{"GET", "HEAD"} {
		r := s.call(w.checker, method, "/v1/checker/jobs/"+w.jobID+"/recordings/"+id, "")
		equal(t, r.Code, http.StatusOK)
		equal(t, r.Header().Get(checkers.UploadOffsetHeader), "1000")
	}
	w.sends(id, 1000, aFilm[1000:]).want(http.StatusOK)

	s.assembles(10 * time.Minute)
	equal(t, len(s.attached()), 0) // the claim lives
	finish := func() {
		equal(t, w.call("POST", "/recordings/"+id+"/finish", "").want(http.StatusOK)["status"], any("finished"))
	}
	finish()
	finish()
	equal(t, w.sends(id, len(aFilm), []byte("more")).refused(http.StatusConflict, domain.CodeConflict)["error"], any("the recording is finished"))
	s.assembles(0)
	s.assembles(0)

	attached := s.attached()
	if len(attached) != 1 {
		t.Fatalf("the log knows %+v", attached)
	}
	got := attached[0]
	if got.ID != id || got.URL != "/v1/evidence/"+id || got.DurationMs != 5800 || got.ContentType != "video/webm" || strconv.Itoa(got.Token) != w.token {
		t.Errorf("attached is %+v", got)
	}
	w.checks(passes).completes("Fine.")
	film, report := w.seen(key)
	plan, err := webm.Scan(bytes.NewReader(aFilm))
	must.NoError(t, err)
	var clean bytes.Buffer
	must.NoError(t, blob.Kind{Media: "video/webm"}.Clean(&clean, plan.Reader(bytes.NewReader(aFilm))))
	want := clean.Bytes()
	if !bytes.Equal(film, want) {
		t.Errorf("the recording has %d bytes, not these %d", len(film), len(want))
	}
	link, _ := report["recordingUrl"].(string)
	list, _ := report["recordings"].([]any)
	equal(t, list, []any{map[string]any{
		"id": id, "url": field(list, 0, "url"), "contentType": "video/webm", "size": float64(len(want)), "startedAt": body["startedAt"], "durationMs": 5800.0,
	}})
	part := s.visit(link, "Range", "bytes=100-199")
	equal(t, part.Code, http.StatusPartialContent)
	equal(t, part.Body.String(), string(want[100:200]))
}

// What was recorded is the report's whenever it is finished, by whomever.
func TestALostTabsRecordingIsFinishedByTheService(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)

	given := s.working(key)
	lost := given.recording()
	given.sendsAll(lost, aFilm[:len(aFilm)-200]) // it breaks off in the middle of a frame
	given.call("POST", "/release", "").want(http.StatusOK)
	given.sends(lost, len(aFilm)-200, aFilm[len(aFilm)-200:]).refused(http.StatusConflict, domain.CodeConflict)
	s.assembles(time.Minute)
	equal(t, len(s.attached()), 0) // it may have been on its way
	s.assembles(2 * time.Minute)
	if got := s.attached(); len(got) != 1 || got[0].ID != lost || got[0].DurationMs != 5600 {
		t.Errorf("attached are %+v", got)
	}
	// The next checker completes the test; it is their report's, too.
	next := s.claims(s.checker(), given.jobID)
	next.checks(passes).completes("Fine.")
	if film, _ := next.seen(key); len(film) == 0 {
		t.Error("there is no recording")
	}

	// Who has completed it sends the rest.
	w := s.working(key)
	late, nothing := w.recording(), w.recording()
	w.sends(late, 0, aFilm[:2000]).want(http.StatusOK)
	w.checks(passes).completes("Fine.")
	w.sends(late, 2000, aFilm[2000:]).want(http.StatusOK)
	s.assembles(3 * time.Minute)
	if got := s.attached(); len(got) != 2 || got[1].ID != late || got[1].DurationMs != 5800 {
		t.Errorf("attached are %+v, and nothing is %s", got, nothing)
	}
	if _, report := w.seen(key); report["recordingUrl"] == nil {
		t.Error("the report has no recording")
	}
}

// An MP4, and what is no recording but begins like one, stays as it came.
func TestWhatCannotBeMadeSeekableStaysAsItCame(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	for media, film := range map[string]string{
		"video/mp4":  "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41" + strings.Repeat("x", 5000),
		"video/webm": "\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm" + strings.Repeat("x", 5000),
	} {
		w := s.working(key)
		id := w.recording()
		equal(t, w.sends(id, 0, []byte("<html>")).paths(), []string{"body"})
		w.sends(id, 0, []byte(film)).want(http.StatusOK)
		w.call("POST", "/recordings/"+id+"/finish", "").want(http.StatusOK)
		w.checks(passes).completes("Fine.")
		s.assembles(0)
		got, report := w.seen(key)
		list, _ := report["recordings"].([]any)
		if string(got) != film || field(list, 0, "contentType") != media || field(list, 0, "durationMs") != nil {
			t.Errorf("%s came back as %d bytes, %v", media, len(got), list)
		}
	}
}

func TestARecordingLosesWhatTellsOfItsMaker(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	for film, clean := range map[string]string{
		"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41\x00\x00\x00\x11udtaAnn Smith": "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp41" +
			"\x00\x00\x00\x11free" + strings.Repeat("\x00", len("Ann Smith")),
		"\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm\x7b\xa9\x89Ann Smith": "\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm\x7b\xa9\x89" +
			strings.Repeat("\x00", len("Ann Smith")),
	} {
		w := s.working(key)
		id := w.recording()
		w.sends(id, 0, []byte(film)).want(http.StatusOK)
		w.call("POST", "/recordings/"+id+"/finish", "").want(http.StatusOK)
		w.checks(passes).completes("Fine.")
		s.assembles(0)
		if got, _ := w.seen(key); string(got) != clean {
			t.Errorf("%q became %q", film, got)
		}
	}
}

// Another checker's, another claim's or another job's recording is none.
func TestARecordingIsItsClaimsAlone(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w, other := s.working(key), s.working(key)
	id, theirs := w.recording(), other.recording()
	w.sends(id, 0, aFilm[:100]).want(http.StatusOK)
	call := func(checker, method, jobID, id, token string) result {
		path := "/v1/checker/jobs/" + jobID + "/recordings/" + id
		if method == "POST" {
			path += "/finish"
		}
		return s.call(checker, method, path, "x", wire.ClaimTokenHeader, token, checkers.UploadOffsetHeader, "100")
	}
	stranger := s.checker()
	for _, method := range []string{"GET", "HEAD", "PATCH", "POST"} {
		for name, r := range map[string]result{
			"their recording at one's own job": call(w.checker, method, w.jobID, theirs, w.token),
			"one's own at their job":           call(other.checker, method, other.jobID, id, other.token),
			"a guess":                          call(w.checker, method, w.jobID, uuid.NewString(), w.token),
			"no id":                            call(w.checker, method, w.jobID, "..%2F"+id, w.token),
		} {
			if r.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", method, name, r.Code, r.Body)
			}
		}
		want := http.StatusConflict
		if method == "GET" || method == "HEAD" {
			want = http.StatusNotFound
		}
		equal(t, call(stranger, method, w.jobID, id, w.token).Code, want)
		equal(t, call(key, method, w.jobID, id, w.token).Code, http.StatusUnauthorized)
	}
	// Claimed again, the job is recorded anew; what was sent can still be seen.
	w.call("POST", "/release", "").want(http.StatusOK)
	again := s.claims(w.checker, w.jobID)
	again.sends(id, 100, aFilm[100:]).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, call(w.checker, "GET", w.jobID, id, w.token).want(http.StatusOK)["offset"], any(100.0))
}

// Parts that broke off, before or behind their file, cost nothing; what was
// answered is there, and so it is for a backup.
func TestAPartThatBrokeOffIsSentAgain(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	good := s.Evidence.Files
	w := s.working(key)
	id := w.recording()
	w.sends(id, 0, aFilm[:700]).want(http.StatusOK)
	for _, fault := range []*faultyFiles{{before: errors.New("out of luck")}, {behind: errors.New("out of luck")}} {
		fault.Files, s.Evidence.Files = good, fault
		w.sends(id, 700, aFilm[700:]).refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
		s.Evidence.Files = good
	}
	w.sends(id, 700, aFilm[700:]).want(http.StatusOK)
	var keys []string
	listed := func() int {
		keys = nil
		err := evidence.StoredFiles(t.Context(), s.db, func(f evidence.StoredFile) error {
			keys = append(keys, f.Key)
			r, err := good.Read(t.Context(), f.Key, 0, f.Size)
			if err == nil {
				err = r.Close()
			}
			return err
		})
		must.NoError(t, err)
		return len(keys)
	}
	equal(t, listed(), 2)
	parts := keys

	// The bucket is away while the file is made, then it is not.
	w.call("POST", "/recordings/"+id+"/finish", "").want(http.StatusOK)
	s.Evidence.Files = &faultyFiles{Files: good, behind: errors.New("out of luck")}
	s.assembles(0)
	equal(t, len(s.attached()), 0)
	s.Evidence.Files = good
	s.assembles(time.Minute)
	equal(t, len(s.attached()), 1)
	w.checks(passes).completes("Fine.")
	w.seen(key)
	equal(t, listed(), 1) // one file

	sweep := func() {
		t.Helper()
		must.NoError(t, s.Evidence.Sweep(t.Context()))
	}
	there := func(key string) bool {
		r, err := good.Read(t.Context(), key, 0, 1)
		if err == nil {
			_ = r.Close()
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	sweep()
	equal(t, there(parts[0]), true) // a backup may be reading it
	_, err := s.db.ExecContext(t.Context(), `UPDATE http_recording_parts SET begun_at = now() - interval '61 minutes'`)
	must.NoError(t, err)
	sweep()
	var left int
	must.NoError(t, s.db.GetContext(t.Context(), &left, `SELECT count(*) FROM http_recording_parts`))
	equal(t, []any{there(parts[0]), there(parts[1]), left}, []any{false, false, 0})
	w.seen(key)
}

// An account that is erased takes along what is recorded, however far it is.
func TestRecordingsAreErasedWithTheirAccount(t *testing.T) {
	t.Parallel()
	s := own(t)
	account, key := s.account(100)
	_, otherKey := s.account(100)
	w, other := s.working(key), s.working(otherKey)
	done, open, theirs := w.recording(), w.recording(), other.recording()
	w.sendsAll(done, aFilm)
	w.sends(open, 0, aFilm[:500]).want(http.StatusOK)
	other.sends(theirs, 0, aFilm[:500]).want(http.StatusOK)
	w.call("POST", "/recordings/"+done+"/finish", "").want(http.StatusOK)
	s.assembles(0)
	equal(t, len(s.attached()), 1)
	// A process is at work on a third one, a part is on its way, and a crash left a file.
	busy := w.recording()
	w.sends(busy, 0, aFilm[:500]).want(http.StatusOK)
	s.set(`UPDATE http_recordings SET taken_until = now() + interval '10 minutes' WHERE id = $1`, busy)
	late := uuid.NewString()
	s.set(`INSERT INTO http_recording_parts (id, recording_id, account_id, job_id, at, size, begun_at)
		VALUES ($1, $2, $3, $4, 500, 1, now())`, late, open, account, w.jobID)
	must.NoError(t, s.Evidence.Files.Write(t.Context(), account+"/"+w.jobID+"/"+uuid.NewString(), "video/webm", nil, strings.NewReader("stray")))

	must.NoError(t, s.deps.Vault.(*vault.Vault).Shred(t.Context(), account))
	erase := func(wantMore bool, wantUnderWay int) {
		t.Helper()
		n, underWay, err := evidence.Erase(t.Context(), s.db, s.Evidence.Files, account, "")
		if err != nil || (n > 0) != wantMore || underWay != wantUnderWay {
			t.Errorf("%d erased, %d under way, %v", n, underWay, err)
		}
	}
	erase(true, 2)
	equal(t, s.sizeOf(account), 0)
	s.assembles(20 * time.Minute) // it finds the account erased
	erase(false, 1)
	s.set(`UPDATE http_recording_parts SET begun_at = now() - interval '61 seconds' WHERE id = $1`, late)
	erase(true, 0)
	erase(false, 0)
	w.sends(open, 500, aFilm[500:]).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.sizeOf(account), 0) // what lost, or was attached lately, too
	for query, want := range map[string]int{
		`SELECT count(*) FROM http_recordings WHERE account_id = $1`: 0, `SELECT count(*) FROM http_recording_parts WHERE account_id = $1`: 0,
		`SELECT count(*) FROM http_recordings WHERE account_id <> $1`: 1, `SELECT count(*) FROM http_recording_parts WHERE account_id <> $1`: 1,
	} {
		var n int
		if err := s.db.GetContext(t.Context(), &n, query, account); err != nil || n != want {
			t.Errorf("%d, %v: %s", n, err, query)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.parts.Bucket, account, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	other.sends(theirs, 500, aFilm[500:]).want(http.StatusOK)
}
