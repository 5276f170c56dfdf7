package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
)

// An item has several pictures, a verdict can be taken back, and the report shows
// what is left.
func TestSeveralPicturesOfAnItem(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	a, b := w.shown(aPNG), w.shown(filetest.PNG(" another"))
	put := func(body string) result { return w.call("PUT", "/items/"+w.items[0], body) }
	both := put(fmt.Sprintf(`{"status": "fail", "screenshotUrls": [%q, %q]}`, a, b)).want(http.StatusOK)
	links, _ := both["screenshotUrls"].([]any)
	if len(links) != 2 || links[0] != both["screenshotUrl"] {
		t.Fatalf("the item shows %v", both)
	}
	for _, link := range links {
		if got := s.visit(fmt.Sprint(link)); got.Code != http.StatusOK {
			t.Errorf("%s: %d", link, got.Code)
		}
	}
	if got := put(`{"status": "pending", "note": "later"}`).want(http.StatusOK); got["status"] != "pending" || got["note"] != "later" || got["screenshotUrl"] != nil {
		t.Errorf("taken back, the item is %v", got)
	}
	put(fmt.Sprintf(`{"status": "fail", "screenshotUrl": %q, "screenshotUrls": [%q]}`, a, b)).want(http.StatusBadRequest)
	put(`{"status": "fail", "screenshotUrls": ["https://qa.example/v1/evidence/018f2f75-eeee-7d3b-9a52-6f0a3b1c2d4e"]}`).want(http.StatusBadRequest)
	put(`{"status": "fail", "screenshotUrls": ["` + strings.Repeat(`x","`, 10) + `x"]}`).want(http.StatusBadRequest)
	put(fmt.Sprintf(`{"status": "fail", "screenshotUrls": [%q, %q]}`, b, a)).want(http.StatusOK)
	w.completes("It broke.")
	report := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)
	items, _ := report["items"].([]any)
	shown, _ := items[0].(map[string]any)
	if all, _ := shown["screenshotUrls"].([]any); len(all) != 2 || all[0] != shown["screenshotUrl"] {
		t.Errorf("the report shows %v", shown)
	}
	for _, format := range []string{"md", "junit", "ctrf"} {
		if got := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report?format="+format, ""); strings.Count(got.Body.String(), "/v1/evidence/") < 2 {
			t.Errorf("%s shows %s", format, got.Body.String())
		}
	}
}

func TestEvidenceOfEachKindComesBackAsItCame(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	for _, media := range []string{"image/png", "image/jpeg", "image/gif", "image/webp", "video/mp4", "video/webm"} {
		content := filetest.Whole(media, strings.Repeat("\x00\r\n--", 40_000)) // several reads, and no boundary
		up := w.uploads(content).want(http.StatusCreated)
		link, _ := up["url"].(string)
		equal(t, up, map[string]any{"url": link, "contentType": media, "size": float64(len(content))})
		r := s.visit(link)
		equal(t, r.Code, http.StatusOK)
		if r.Body.String() != content {
			t.Errorf("%s: %d bytes came back, %d were sent", media, r.Body.Len(), len(content))
		}
		id := strings.Split(strings.TrimPrefix(link, "https://qa.example/v1/evidence/"), "?")[0]
		_, extension, _ := strings.Cut(media, "/")
		for name, want := range map[string]string{
			"Content-Type":                 media,
			"Content-Length":               fmt.Sprint(len(content)),
			"X-Content-Type-Options":       "nosniff",
			"Content-Security-Policy":      "sandbox; default-src 'none'",
			"Content-Disposition":          `inline; filename="evidence-` + id + "." + extension + `"`,
			"Cross-Origin-Resource-Policy": "cross-origin",
			"Cache-Control":                "private, max-age=900",
			"Accept-Ranges":                "bytes",
			"Etag":                         `"` + id + `"`,
		} {
			equal(t, name+": "+r.Header().Get(name), name+": "+want)
		}
		equal(t, s.visit(link, "If-None-Match", `"`+id+`"`).Code, http.StatusNotModified)
	}
}

func TestAReportsLinksWorkInEveryFormat(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	shot, video := w.shown(aPNG), w.shown(filetest.Whole("video/webm", ""))

	checked := w.call("PUT", "/items/"+w.items[0], `{"status":"fail","note":"broken","screenshotUrl":"`+shot+`"}`).want(http.StatusOK)
	answered, _ := checked["screenshotUrl"].(string)
	equal(t, s.visit(answered).Body.String(), aPNG)
	// Without its signature the link says the same.
	bare, _, _ := strings.Cut(video, "?")
	w.call("POST", "/complete", `{"recordingUrl":"`+bare+`"}`).want(http.StatusOK)

	report := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report", "").want(http.StatusOK)
	recording, _ := report["recordingUrl"].(string)
	equal(t, s.visit(recording).Header().Get("Content-Type"), "video/webm")
	item, _ := report["items"].([]any)[0].(map[string]any)
	screenshot, _ := item["screenshotUrl"].(string)
	equal(t, s.visit(screenshot).Body.String(), aPNG)

	path := strings.TrimPrefix(strings.Split(shot, "?")[0], "https://qa.example")
	for _, format := range []string{"junit", "ctrf", "md"} {
		body := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report?format="+format, "").Body.String()
		_, after, found := strings.Cut(body, "https://qa.example"+path+"?")
		if !found {
			t.Errorf("%s has no signed link: %s", format, body)
			continue
		}
		query := strings.ReplaceAll(after[:strings.IndexAny(after, ` ">)<`+"\n")], "&amp;", "&")
		query = strings.ReplaceAll(query, `\u0026`, "&")
		equal(t, s.visit("https://qa.example"+path+"?"+query).Body.String(), aPNG)
	}
	// What the log keeps says nothing without a signature, and no host.
	kept := 0
	for _, e := range s.events() {
		raw, err := json.Marshal(e)
		must.NoError(t, err)
		if bytes.Contains(raw, []byte("signature=")) || bytes.Contains(raw, []byte("qa.example/v1/evidence")) {
			t.Errorf("the log holds a link: %s", raw)
		}
		if bytes.Contains(raw, []byte(`"`+path+`"`)) {
			kept++
		}
	}
	equal(t, kept, 2) // the verdict, the report
}

func TestAStrangersLinkIsShownAsItCame(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	id := uuid.NewString()
	for _, link := range []string{
		"https://shots.example/1.png?a=1&b=2", "http://qa.example/v1/evidence/" + id, "https://qa.example.evil.example/v1/evidence/" + id,
		"https://qa.example:443/v1/evidence/" + id, "https://QA.example/v1/evidence/" + id, "https://qa.example/v1//evidence/" + id,
	} {
		checked := w.call("PUT", "/items/"+w.items[0], `{"status":"pass","screenshotUrl":"`+link+`"}`).want(http.StatusOK)
		equal(t, checked["screenshotUrl"], any(link))
	}
}

func TestEvidenceOfAnotherJobIsNoEvidence(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, keyA := s.account(100)
	_, keyB := s.account(100)
	w, sameAccount, other := s.working(keyA), s.working(keyA), s.working(keyB)
	own := w.shown(aPNG)
	id, _, _ := strings.Cut(strings.TrimPrefix(own, "https://qa.example/v1/evidence/"), "?")
	for _, link := range []string{
		sameAccount.shown(aPNG), other.shown(aPNG),
		"https://qa.example/v1/evidence/", "https://qa.example/v1/evidence/" + uuid.NewString(),
		"https://qa.example/v1/evidence/" + strings.ToUpper(id), "https://qa.example/v1/evidence/" + id + "/",
		"https://qa.example/v1/evidence/../evidence/" + id, "https://qa.example/v1/evidence/x",
	} {
		equal(t, w.call("PUT", "/items/"+w.items[0], `{"status":"pass","reason":"blocked","screenshotUrl":"`+link+`"}`).paths(),
			[]string{"reason", "screenshotUrl"})
		equal(t, w.call("POST", "/complete", `{"recordingUrl":"`+link+`"}`).paths(), []string{"recordingUrl"})
	}
	// The next checker of the same job may go on with it.
	w.call("POST", "/release", "").want(http.StatusOK)
	next := s.claims(s.checker(), w.jobID)
	next.check(0, `{"status":"pass","screenshotUrl":"`+own+`"}`)
}

func TestOnlyTheClaimantUploads(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	upload := func(checker, jobID, token string) result {
		body, contentType := formOf(t, "shot.png", "image/png", aPNG)
		return s.call(checker, "POST", "/v1/checker/jobs/"+jobID+"/evidence", body, "X-Claim-Token", token, "Content-Type", contentType)
	}
	stranger := s.checker()
	upload(stranger, w.jobID, w.token).refused(http.StatusConflict, domain.CodeConflict)
	upload(w.checker, w.jobID, "7").refused(http.StatusConflict, domain.CodeConflict)
	upload(w.checker, uuid.NewString(), "1").refused(http.StatusNotFound, domain.CodeNotFound)
	upload(w.checker, "no%20id!", "1").refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, upload(w.checker, w.jobID, "").paths(), []string{"X-Claim-Token"})
	w.call("POST", "/release", "").want(http.StatusOK)
	upload(w.checker, w.jobID, w.token).refused(http.StatusConflict, domain.CodeConflict)
	again := s.claims(w.checker, w.jobID)
	upload(w.checker, w.jobID, w.token).refused(http.StatusConflict, domain.CodeConflict) // the first claim's
	upload(w.checker, w.jobID, again.token).want(http.StatusCreated)
	again.checks(passes).completes("Fine.")
	upload(w.checker, w.jobID, again.token).refused(http.StatusConflict, domain.CodeConflict)
	finished, unfinished := s.pieces()
	equal(t, []int{finished, unfinished}, []int{1, 0})
}

func TestWhatIsNoEvidenceIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	target := "/v1/checker/jobs/" + w.jobID + "/evidence"
	good, contentType := formOf(t, "shot.png", "image/png", aPNG)
	boundary := strings.TrimPrefix(contentType, "multipart/form-data; boundary=")
	part := func(name string) string {
		return "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"x\"\r\n\r\n" + aPNG + "\r\n"
	}
	end := "--" + boundary + "--\r\n"
	type refused struct {
		body, contentType string
		paths             []string
	}
	form := func(content string) refused {
		body, contentType := formOf(t, "shot.png", "image/png", content)
		return refused{body, contentType, []string{"file"}}
	}
	for name, c := range map[string]refused{
		"HTML that calls itself a PNG": form("<!doctype html><script>alert(1)</script>"),
		"SVG":                          form(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`),
		"HTML behind PNG's signature":  form("\x89PNG\r\n\x1a\n<html><script>alert(1)</script>"),
		"an empty file":                form(""),
		"a picture that was cut off":   form(strings.TrimSuffix(aPNG, "IEND\xae\x42\x60\x82")),
		"a film of nothing":            form(strings.Replace(filetest.Whole("video/mp4", ""), "moov", "free", 1)),
		"no form":                      {good, "image/png", []string{"body"}},
		"no content type":              {good, "", []string{"body"}},
		"a form without a boundary":    {good, "multipart/form-data", []string{"body"}},
		"another boundary":             {good, "multipart/form-data; boundary=other", []string{"file"}},
		"an empty body":                {"", contentType, []string{"file"}},
		"a form that ends early":       {good[:len(good)-len(end)-10], contentType, []string{"body"}},
		"no file":                      {part("picture") + end, contentType, []string{"file"}},
		"two files":                    {part("file") + part("file") + end, contentType, []string{"file"}},
		"too many parts":               {strings.Repeat(part("x"), 30) + part("file") + end, contentType, []string{"body"}},
	} {
		r := s.call(w.checker, "POST", target, c.body, "Content-Type", c.contentType)
		if got := r.paths(); !slices.Equal(got, append([]string{"X-Claim-Token"}, c.paths...)) {
			t.Errorf("%s: got %v, want %v", name, got, c.paths)
		}
	}
	finished, unfinished := s.pieces()
	equal(t, []int{finished, unfinished}, []int{0, 0})
}

func TestAFilesNameAndTypePlayNoPart(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	w := s.working(key)
	for i, name := range []string{
		"../../../etc/passwd", "shot.svg", "x.html", "", `a\"; filename=\"b.exe`, "файл.png", "C:\\\\con", strings.Repeat("x", 3000), "a%0d%0aSet-Cookie: x=1",
	} {
		content := filetest.PNG(fmt.Sprint(i))
		body, contentType := formOf(t, name, "text/html; charset=utf-8", content, "note", "file2")
		up := s.call(w.checker, "POST", "/v1/checker/jobs/"+w.jobID+"/evidence", body,
			"X-Claim-Token", w.token, "Content-Type", contentType).want(http.StatusCreated)
		equal(t, up["contentType"], any("image/png"))
		link, _ := up["url"].(string)
		r := s.visit(link)
		equal(t, r.Header().Get("Content-Type"), "image/png")
		id, _, _ := strings.Cut(strings.TrimPrefix(link, "https://qa.example/v1/evidence/"), "?")
		equal(t, r.Header().Get("Content-Disposition"), `inline; filename="evidence-`+id+`.png"`)
		equal(t, r.Body.String(), content)
	}
	if logged := s.logged.String(); strings.Contains(logged, "IHDR") || strings.Contains(logged, "signature=") || strings.Contains(logged, "passwd") {
		t.Errorf("the log tells what was uploaded: %.2000s", logged)
	}
}

func TestEvidenceHasItsLimits(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	w := s.working(key)
	of := func(media string, size int) string {
		return filetest.Whole(media, strings.Repeat("\x00", size-len(filetest.Whole(media, ""))))
	}
	const imageLimit, videoLimit = 10 << 20, wire.MaxBody - 64<<10
	w.uploads(of("image/png", imageLimit)).want(http.StatusCreated)
	over := w.uploads(of("image/png", imageLimit+1)).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	equal(t, over["error"], any("a file of the type image/png may have 10485760 bytes, this one has 10485761"))
	video := of("video/mp4", videoLimit)
	up := w.uploads(video).want(http.StatusCreated)
	equal(t, up["size"], any(float64(videoLimit)))
	w.uploads(of("video/mp4", videoLimit+1)).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	w.uploads(of("video/mp4", videoLimit+1<<20)).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	link, _ := up["url"].(string)
	if got := s.visit(link).Body.Len(); got != videoLimit {
		t.Errorf("%d bytes came back", got)
	}
	equal(t, s.Spool.Disk.Holders(), []string{}) // everything was given back
	finished, unfinished := s.pieces()
	equal(t, []int{finished, unfinished}, []int{2, 0})
}

func TestAJobHoldsSoManyPieces(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	first := w.shown(aPNG)
	_, err := s.db.ExecContext(t.Context(), `
		INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
		SELECT gen_random_uuid(), account_id, job_id, checker_id, decode(md5(n::text), 'hex'), content_type, size, begun_at, stored_at
		FROM http_evidence, generate_series(1, $1) AS n
		WHERE job_id = $2`, 200-2, w.jobID)
	must.NoError(t, err)
	// Of many at once that want the last place, one gets it.
	var uploads sync.WaitGroup
	got := make([]int, 6)
	for i := range got {
		uploads.Go(func() { got[i] = w.uploads(filetest.PNG(fmt.Sprint(i))).Code })
	}
	uploads.Wait()
	slices.Sort(got)
	equal(t, got, []int{201, 409, 409, 409, 409, 409})
	w.uploads(filetest.PNG("one more")).refused(http.StatusConflict, domain.CodeConflict)
	equal(t, strings.Split(w.shown(aPNG), "?")[0], strings.Split(first, "?")[0]) // a repeat is none more
}

func TestTheSameFileAgainIsTheSameEvidence(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	content := filetest.PNG(strings.Repeat("x", 1<<20))
	links := make([]string, 4)
	var uploads sync.WaitGroup
	for i := range links {
		uploads.Go(func() { links[i], _, _ = strings.Cut(w.shown(content), "?") })
	}
	uploads.Wait()
	for _, link := range links {
		equal(t, link, links[0])
	}
	finished, unfinished := s.pieces()
	equal(t, []int{finished, unfinished}, []int{1, 0})
}

func TestAPartOfAFile(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	content := filetest.PNG(strings.Repeat("0123456789", 20_000))
	link := s.working(key).shown(content)
	size := len(content)
	id, _, _ := strings.Cut(strings.TrimPrefix(link, "https://qa.example/v1/evidence/"), "?")
	for asked, want := range map[string][2]int{
		"bytes=0-0":                      {0, 1},
		"bytes=16-99999":                 {16, 100_000},
		"bytes=100-":                     {100, size},
		"bytes=-7":                       {size - 7, size},
		"bytes=-999999999":               {0, size},
		"bytes=5-999999999":              {5, size},
		"bytes=5-9223372036854775807":    {5, size},
		fmt.Sprintf("bytes=%d-", size-1): {size - 1, size},
	} {
		r := s.visit(link, "Range", asked)
		equal(t, r.Code, http.StatusPartialContent)
		if r.Body.String() != content[want[0]:want[1]] {
			t.Errorf("%s: got %d bytes", asked, r.Body.Len())
		}
		equal(t, r.Header().Get("Content-Range"), fmt.Sprintf("bytes %d-%d/%d", want[0], want[1]-1, size))
		equal(t, r.Header().Get("Content-Length"), fmt.Sprint(want[1]-want[0]))
	}
	for _, passedOver := range []string{
		"bytes=0-1,5-6", "bytes=5-1", "bytes=", "bytes=-", "bytes=x-", "bytes=5", "bytes=--5", "items=0-1", "0-1",
		"bytes=99999999999999999999-", "bytes=+1-2",
	} {
		r := s.visit(link, "Range", passedOver)
		if r.Code != http.StatusOK || r.Body.Len() != size || r.Header().Get("Content-Range") != "" {
			t.Errorf("%s: %d, %d bytes", passedOver, r.Code, r.Body.Len())
		}
	}
	for _, beyond := range []string{fmt.Sprintf("bytes=%d-", size), "bytes=9999999-99999999", "bytes=-0"} {
		r := s.visit(link, "Range", beyond)
		r.refused(http.StatusRequestedRangeNotSatisfiable, domain.CodeInvalidRequest)
		equal(t, r.Header().Get("Content-Range"), fmt.Sprintf("bytes */%d", size))
	}
	equal(t, s.visit(link, "Range", "bytes=0-0", "If-Range", `"`+id+`"`).Code, http.StatusPartialContent)
	equal(t, s.visit(link, "Range", "bytes=0-0", "If-Range", `"other"`).Code, http.StatusOK)
}

// A whole browser's way, over a real connection.
func TestEvidenceOverTheWire(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	w := s.working(key)
	server := httptest.NewServer(s)
	defer server.Close()
	content := filetest.PNG(strings.Repeat("x", 3<<20))
	link := strings.Replace(w.shown(content), "https://qa.example", server.URL, 1)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
			if err != nil {
				t.Error(err)
				return
			}
			got, err := server.Client().Do(ask)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = got.Body.Close() }()
			all, err := io.ReadAll(got.Body)
			if err != nil || string(all) != content || got.ContentLength != int64(len(content)) {
				t.Errorf("%d of %d bytes, %v", len(all), got.ContentLength, err)
			}
		})
	}
	readers.Wait()
}
