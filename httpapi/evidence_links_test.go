package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
	"humanqa/internal/vault"
)

func TestALinkOpensWhatItWasSignedForAsLongAsItSays(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	_, otherKey := s.account(100)
	now := time.Now()
	s.Evidence.Now = func() time.Time { return now }
	w := s.working(key)
	link, second, others := w.shown(aPNG), w.shown(filetest.PNG("2")), s.working(otherKey).shown(aPNG)
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
	now = issued.Truncate(time.Second).Add(15*time.Minute - time.Second)
	equal(t, s.visit(link).Code, http.StatusOK)
	now = issued.Add(15 * time.Minute)
	expired := s.visit(link).refused(http.StatusForbidden, domain.CodeForbidden)
	equal(t, expired["hint"], any("read the report again: it has fresh links"))
	s.visit(withQuery(t, link, func(q url.Values) { q.Set("signature", flipped(q.Get("signature"))) })).
		refused(http.StatusNotFound, domain.CodeNotFound)
}

// A report that was exported stays whole: its links last as long as the account's
// key, and open one file each.
func TestTheLinksOfAnExportedReportLast(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	accountID, key := s.account(100)
	now := time.Now()
	s.Evidence.Now = func() time.Time { return now }
	w := s.working(key)
	shot, other := w.shown(aPNG), w.shown(filetest.PNG("2"))
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
	must.NoError(t, s.deps.Vault.(*vault.Vault).Shred(t.Context(), accountID))
	if r := s.visit(kept[0]); r.Code == http.StatusOK {
		t.Errorf("the account's key is gone, and the link works: %d", r.Code)
	}
}

func withoutExpiry(t *testing.T, query string) string {
	t.Helper()
	values, err := url.ParseQuery(query)
	must.NoError(t, err)
	values.Del("expires")
	return values.Encode()
}

// Decisions, "Checker work": a link is text like any other.
func TestALinkWithWhatNobodySeesIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
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
	s := shared(t)
	accountID, key := s.account(100)
	link := s.working(key).shown(aPNG)
	v, _ := s.deps.Vault.(*vault.Vault)
	must.NoError(t, v.Shred(t.Context(), accountID))
	s.visit(link).refused(http.StatusNotFound, domain.CodeNotFound)
}
