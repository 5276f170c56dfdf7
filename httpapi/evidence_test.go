package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/vault"
)

const aPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89 not much more"

// formOf is a form with one file; fields are further parts before it.
func formOf(t *testing.T, name, declared, content string, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		if err := w.WriteField(f, "whatever"); err != nil {
			t.Fatal(err)
		}
	}
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", `form-data; name="file"; filename="`+name+`"`)
	header.Set("Content-Type", declared)
	part, err := w.CreatePart(header)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

func (w *work) uploads(content string) result {
	w.s.t.Helper()
	body, contentType := formOf(w.s.t, "shot.png", "image/png", content)
	return w.s.call(w.checker, "POST", "/v1/checker/jobs/"+w.jobID+"/evidence", body,
		"X-Claim-Token", w.token, "Content-Type", contentType)
}

// shown uploads the file and gives its link.
func (w *work) shown(content string) string {
	w.s.t.Helper()
	link, _ := w.uploads(content).want(http.StatusCreated)["url"].(string)
	return link
}

// visit opens a link of the service, as a browser would.
func (s *service) visit(link string, headers ...string) result {
	s.t.Helper()
	target, ours := strings.CutPrefix(link, "https://qa.example")
	if !ours {
		s.t.Fatalf("%q is not a link of the service", link)
	}
	return s.call("", "GET", target, "", headers...)
}

// working is a checker's claim on a job with one item.
func (s *service) working(key string) *work {
	s.t.Helper()
	return s.claims(s.checker(), s.submittedWith(key, checklistOf(1)))
}

// pieces counts the rows that are finished, and those that are not.
func (s *service) pieces() (finished, unfinished int) {
	s.t.Helper()
	err := s.db.QueryRowContext(s.t.Context(), `SELECT count(*) FILTER (WHERE stored_at IS NOT NULL), count(*) FILTER (WHERE stored_at IS NULL) FROM http_evidence`).
		Scan(&finished, &unfinished)
	if err != nil {
		s.t.Fatal(err)
	}
	return finished, unfinished
}

func withQuery(t *testing.T, link string, change func(url.Values)) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	change(q)
	u.RawQuery = q.Encode()
	return u.String()
}

func TestEvidenceOfEachKindComesBackAsItCame(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	for media, head := range map[string]string{
		"image/png":  aPNG,
		"image/jpeg": "\xff\xd8\xff\xe0\x00\x10JFIF\x00",
		"image/gif":  "GIF89a\x01\x00\x01\x00",
		"image/webp": "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00",
		"video/mp4":  "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41",
		"video/webm": "\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm",
	} {
		content := head + strings.Repeat("\x00\r\n--", 40_000) // several reads, and no boundary
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
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	shot, video := w.shown(aPNG), w.shown("\x1a\x45\xdf\xa3\x8b\x42\x86\x81\x01\x42\x82\x84webm")

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
	for _, e := range s.log.All() {
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
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
	s := setup(t)
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
	s := setup(t)
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
	s := setup(t)
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
	s := setup(t)
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
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	for i, name := range []string{
		"../../../etc/passwd", "shot.svg", "x.html", "", `a\"; filename=\"b.exe`, "файл.png", "C:\\\\con", strings.Repeat("x", 3000), "a%0d%0aSet-Cookie: x=1",
	} {
		content := fmt.Sprint(aPNG, i)
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
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	const aGIF, anMP4 = "GIF89a\x01\x00\x01\x00", "\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41"
	w.uploads(aGIF + strings.Repeat("\x00", maxImage-len(aGIF))).want(http.StatusCreated)
	over := w.uploads(aGIF+strings.Repeat("\x00", maxImage-len(aGIF)+1)).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	equal(t, over["error"], any("a file of the type image/gif may have 10485760 bytes, this one has 10485761"))
	video := anMP4 + strings.Repeat("\x00", maxVideo-len(anMP4))
	up := w.uploads(video).want(http.StatusCreated)
	equal(t, up["size"], any(float64(maxVideo)))
	w.uploads(video+"\x00").refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	w.uploads(video+strings.Repeat("\x00", 1<<20)).refused(http.StatusRequestEntityTooLarge, domain.CodePayloadTooLarge)
	link, _ := up["url"].(string)
	if got := s.visit(link).Body.Len(); got != maxVideo {
		t.Errorf("%d bytes came back", got)
	}
	equal(t, s.spool.disk.holders(), []string{}) // everything was given back
	finished, unfinished := s.pieces()
	equal(t, []int{finished, unfinished}, []int{2, 0})
}

func TestAJobHoldsSoManyPieces(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	first := w.shown(aPNG)
	_, err := s.db.ExecContext(t.Context(), `
		INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
		SELECT gen_random_uuid(), account_id, job_id, checker_id, decode(md5(n::text), 'hex'), content_type, size, begun_at, stored_at
		FROM http_evidence, generate_series(1, $1) AS n`, maxEvidence-2)
	if err != nil {
		t.Fatal(err)
	}
	// Of many at once that want the last place, one gets it.
	var uploads sync.WaitGroup
	got := make([]int, 6)
	for i := range got {
		uploads.Go(func() { got[i] = w.uploads(fmt.Sprint(aPNG, i)).Code })
	}
	uploads.Wait()
	slices.Sort(got)
	equal(t, got, []int{201, 409, 409, 409, 409, 409})
	w.uploads(aPNG+"one more").refused(http.StatusConflict, domain.CodeConflict)
	equal(t, strings.Split(w.shown(aPNG), "?")[0], strings.Split(first, "?")[0]) // a repeat is none more
}

func TestTheSameFileAgainIsTheSameEvidence(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	content := aPNG + strings.Repeat("x", 1<<20)
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

func TestALinkOpensWhatItWasSignedForAsLongAsItSays(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	_, otherKey := s.account(100)
	now := time.Now()
	s.now = func() time.Time { return now }
	w := s.working(key)
	link, second, others := w.shown(aPNG), w.shown(aPNG+"2"), s.working(otherKey).shown(aPNG)
	path, query, _ := strings.Cut(link, "?")
	secondPath, _, _ := strings.Cut(second, "?")
	_, othersQuery, _ := strings.Cut(others, "?")
	for name, forged := range map[string]string{
		"no signature":          path,
		"another piece's":       secondPath + "?" + query,
		"another account's":     path + "?" + othersQuery,
		"a longer time":         withQuery(t, link, func(q url.Values) { q.Set("expires", fmt.Sprint(now.Add(time.Hour).Unix())) }),
		"the same time, padded": withQuery(t, link, func(q url.Values) { q.Set("expires", "0"+q.Get("expires")) }),
		"no time":               withQuery(t, link, func(q url.Values) { q.Del("expires") }),
		"no number":             withQuery(t, link, func(q url.Values) { q.Set("expires", "soon") }),
		"half a signature":      withQuery(t, link, func(q url.Values) { q.Set("signature", q.Get("signature")[:32]) }),
		"upper case":            withQuery(t, link, func(q url.Values) { q.Set("signature", strings.ToUpper(q.Get("signature"))) }),
		"one bit":               withQuery(t, link, func(q url.Values) { q.Set("signature", flipped(q.Get("signature"))) }),
		"an unknown id":         "https://qa.example/v1/evidence/" + uuid.NewString() + "?" + query,
		"no id":                 "https://qa.example/v1/evidence/x?" + query,
		"the id in upper case":  strings.Replace(link, path, "https://qa.example/v1/evidence/"+strings.ToUpper(strings.TrimPrefix(path, "https://qa.example/v1/evidence/")), 1),
	} {
		if r := s.visit(forged); r.Code != http.StatusNotFound || strings.Contains(r.Body.String(), "IHDR") {
			t.Errorf("%s: %d %s", name, r.Code, r.Body)
		}
	}
	issued := now
	now = issued.Truncate(time.Second).Add(linkValid - time.Second)
	equal(t, s.visit(link).Code, http.StatusOK)
	now = issued.Add(linkValid)
	expired := s.visit(link).refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, expired["hint"], any("read the report again: it has fresh links"))
	s.visit(withQuery(t, link, func(q url.Values) { q.Set("signature", flipped(q.Get("signature"))) })).
		refused(http.StatusNotFound, domain.CodeNotFound)
}

// A report that was exported stays whole: its links last as long as the account's
// key, and open one file each.
func TestTheLinksOfAnExportedReportLast(t *testing.T) {
	t.Parallel()
	s := setup(t)
	accountID, key := s.account(100)
	now := time.Now()
	s.now = func() time.Time { return now }
	w := s.working(key)
	shot, other := w.shown(aPNG), w.shown(aPNG+"2")
	w.check(0, `{"status":"fail","screenshotUrl":"`+shot+`"}`)
	w.completes("Broken.")
	path, query, _ := strings.Cut(shot, "?")
	otherPath, _, _ := strings.Cut(other, "?")
	link := regexp.MustCompile(regexp.QuoteMeta(path) + `\?[^ "<>)]*`)
	var kept []string
	for _, format := range []string{"md", "markdown", "junit", "ctrf"} {
		body := s.call(key, "GET", "/v1/jobs/"+w.jobID+"/report?format="+format, "").Body.String()
		kept = append(kept, link.FindString(body))
	}
	now = now.AddDate(10, 0, 0)
	for _, link := range kept {
		equal(t, link, kept[0])
		equal(t, s.visit(link).Body.String(), aPNG)
	}
	s.visit(shot).refused(http.StatusForbidden, domain.CodeForbidden) // the JSON report's last for minutes

	_, lasting, _ := strings.Cut(kept[0], "?")
	for name, forged := range map[string]string{
		"another file's":          otherPath + "?" + lasting,
		"with a time":             kept[0] + "&expires=" + fmt.Sprint(now.Add(time.Hour).Unix()),
		"that of a passing link":  path + "?" + withoutExpiry(t, query),
		"a signature's beginning": kept[0][:len(kept[0])-1],
	} {
		if r := s.visit(forged); r.Code != http.StatusNotFound {
			t.Errorf("%s: %d", name, r.Code)
		}
	}
	if err := s.deps.Vault.(*vault.Vault).Shred(t.Context(), accountID); err != nil {
		t.Fatal(err)
	}
	if r := s.visit(kept[0]); r.Code == http.StatusOK {
		t.Errorf("the account's key is gone, and the link works: %d", r.Code)
	}
}

func withoutExpiry(t *testing.T, query string) string {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	values.Del("expires")
	return values.Encode()
}

// Decisions, "Checker work": a link is text like any other.
func TestALinkWithWhatNobodySeesIsRefused(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	for _, hidden := range []string{"\u202e", "\u2028", "\u0085", " ", "\u00a0", "\u200b", "\u2066"} {
		link := "https://shots.example/a" + hidden + "b.png"
		equal(t, w.call("PUT", "/items/"+w.items[0], `{"status":"pass","screenshotUrl":"`+link+`"}`).paths(), []string{"screenshotUrl"})
		equal(t, w.call("POST", "/complete", `{"summary":"s","recordingUrl":"`+link+`"}`).paths(), []string{"recordingUrl"})
	}
	w.call("PUT", "/items/"+w.items[0], `{"status":"pass","screenshotUrl":"https://shots.example/%E2%80%AEb%20é.png"}`).want(http.StatusOK)
}

// flipped is the signature with its first digit changed.
func flipped(signature string) string {
	if signature[0] == '0' {
		return "1" + signature[1:]
	}
	return "0" + signature[1:]
}

func TestAShreddedAccountsLinksEnd(t *testing.T) {
	t.Parallel()
	s := setup(t)
	accountID, key := s.account(100)
	link := s.working(key).shown(aPNG)
	v, _ := s.vault.(*vault.Vault)
	if err := v.Shred(t.Context(), accountID); err != nil {
		t.Fatal(err)
	}
	s.visit(link).refused(http.StatusNotFound, domain.CodeNotFound)
}

func TestAPartOfAFile(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	content := aPNG + strings.Repeat("0123456789", 20_000)
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

// faultyFiles is a bucket that fails, before or behind its work.
type faultyFiles struct {
	EvidenceFiles
	before, behind, reading error
}

func (f *faultyFiles) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	if f.before != nil {
		return f.before
	}
	return errors.Join(f.EvidenceFiles.Write(ctx, key, contentType, about, content), f.behind)
}

func (f *faultyFiles) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if f.reading != nil {
		return nil, f.reading
	}
	return f.EvidenceFiles.Read(ctx, key, offset, length)
}

func TestAnUploadThatBrokeOffIsTakenUpAgainOrSwept(t *testing.T) {
	t.Parallel()
	away := errors.New("out of luck")
	for name, fault := range map[string]*faultyFiles{
		"before the file was there": {before: away},
		"behind the file":           {behind: away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			_, key := s.account(100)
			good := s.evidenceFiles
			fault.EvidenceFiles = good
			s.evidenceFiles = fault
			w := s.working(key)
			r := w.uploads(aPNG)
			r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
			if strings.Contains(r.Body.String(), "luck") || !strings.Contains(s.logged.String(), "out of luck") {
				t.Errorf("the answer is %s", r.Body)
			}
			w.uploads(aPNG+"2").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
			finished, unfinished := s.pieces()
			equal(t, []int{finished, unfinished}, []int{0, 2})

			s.evidenceFiles = good
			link := w.shown(aPNG) // the same row goes on
			finished, unfinished = s.pieces()
			equal(t, []int{finished, unfinished}, []int{1, 1})

			// What is young may still be on its way.
			s.sweeps()
			finished, unfinished = s.pieces()
			equal(t, []int{finished, unfinished}, []int{1, 1})
			var broken evidenceRow
			err := s.db.GetContext(t.Context(), &broken, `UPDATE http_evidence SET begun_at = now() - interval '61 minutes' WHERE stored_at IS NULL
				RETURNING id, account_id, job_id, content_type, size, false AS stored`)
			if err != nil {
				t.Fatal(err)
			}
			s.sweeps()
			finished, unfinished = s.pieces()
			equal(t, []int{finished, unfinished}, []int{1, 0})
			if _, err := good.Read(t.Context(), broken.key(), 0, 1); err == nil {
				t.Error("the file that nobody knows is still there")
			}
			equal(t, s.visit(link).Body.String(), aPNG)
			w.uploads(aPNG + "2").want(http.StatusCreated) // and the swept one begins anew
		})
	}
}

func (s *service) sweeps() {
	s.t.Helper()
	if err := s.evidence.sweep(s.t.Context(), s.evidenceFiles); err != nil {
		s.t.Fatal(err)
	}
}

func TestABucketThatIsAwayIsNoFaultOfTheLink(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	link := s.working(key).shown(aPNG)
	s.evidenceFiles = &faultyFiles{EvidenceFiles: s.evidenceFiles, reading: errors.New("out of luck")}
	r := s.visit(link)
	r.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	equal(t, r.Header().Get("Content-Disposition")+r.Header().Get("Etag"), "")
}

// brittle is a file whose bucket goes away in the middle.
type brittle struct{ io.ReadCloser }

func (b brittle) Read(p []byte) (int, error) {
	n, _ := b.ReadCloser.Read(p[:min(len(p), 100)])
	return n, errors.New("out of luck")
}

type brittleFiles struct{ EvidenceFiles }

func (f brittleFiles) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	r, err := f.EvidenceFiles.Read(ctx, key, offset, length)
	return brittle{r}, err
}

func TestHalfAFileIsNotTakenForAWholeOne(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	link := s.working(key).shown(aPNG + strings.Repeat("x", 1000))
	s.evidenceFiles = brittleFiles{s.evidenceFiles}
	server := httptest.NewServer(s)
	defer server.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(link, "https://qa.example", server.URL, 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := server.Client().Do(ask)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	if all, err := io.ReadAll(got.Body); err == nil {
		t.Errorf("%d bytes came, and the end", len(all))
	}
}

// A whole browser's way, over a real connection.
func TestEvidenceOverTheWire(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	w := s.working(key)
	server := httptest.NewServer(s)
	defer server.Close()
	content := aPNG + strings.Repeat("x", 3<<20)
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
