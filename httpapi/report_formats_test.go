package httpapi

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

func TestAReportComesInTheFormatThatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	path := "/v1/jobs/" + s.tested(key, passes, fails) + "/report"
	const (
		asJSON, asXML = "application/json", "application/xml; charset=utf-8"
		asCTRF, asMD  = "application/vnd.ctrf+json", "text/markdown; charset=utf-8"
	)
	for _, c := range []struct{ query, accept, want string }{
		{"", "", asJSON},
		{"?format=json", "text/markdown", asJSON},
		{"?format=junit", "application/json", asXML},
		{"?format=ctrf", "", asCTRF},
		{"?format=md", "", asMD},
		{"?format=markdown", "application/json", asMD},
		{"?format=", "text/markdown", asMD},
		{"", "application/json", asJSON},
		{"", "application/xml", asXML},
		{"", "application/junit+xml", asXML},
		{"", "Application/vnd.CTRF+json", asCTRF},
		{"", "text/markdown;charset=utf-8", asMD},
		{"", "*/*", asJSON},
		{"", "text/*", asMD},
		{"", "application/json;q=0.5, text/markdown;q=0.9", asMD},
		{"", "text/markdown;q=0.5, */*;q=0.1", asMD},
		{"", "application/json;q=0, */*", asXML},
		{"", "image/png", asJSON},
		{"", "image/png, text/html", asJSON},
		{"", "garbage;;;, /", asJSON},
	} {
		headers := []string{}
		if c.accept != "" {
			headers = []string{"Accept", c.accept}
		}
		r := s.call(key, "GET", path+c.query, "", headers...)
		equal(t, r.Code, http.StatusOK)
		if got := r.Header().Get("Content-Type"); got != c.want {
			t.Errorf("%q, Accept %q: %s, want %s", c.query, c.accept, got, c.want)
		}
		equal(t, r.Header().Get("Vary"), "Accept")
	}
	for _, unknown := range []string{"xml", "JUnit5", "html", "%20json"} {
		equal(t, s.call(key, "GET", path+"?format="+unknown, "").paths(), []string{"format"})
	}
}

func TestAReportThatDoesNotExistYetIs404InEveryFormat(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, nil)).want(http.StatusCreated)
	s.claims(s.checker(), texts(batch["jobIds"])[0]).checks(passes).completes("Fine.")
	for _, format := range []string{"json", "junit", "ctrf", "md"} {
		for _, path := range []string{"/v1/jobs/" + id, fmt.Sprintf("/v1/jobs/bulk/%s", batch["batchId"])} {
			r := s.call(key, "GET", path+"/report?format="+format, "")
			if r.refused(http.StatusNotFound, domain.CodeNotFound)["hint"] == nil {
				t.Errorf("%s: no hint", path)
			}
			equal(t, r.Header().Get("Retry-After"), "30")
		}
	}
}

func TestReportsOfSeveralTestsAreOneDocument(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	one, two, pending := s.tested(key, passes), s.tested(key, passes, fails), s.submitted(key)
	path := "/v1/jobs/report?ids=" + strings.Join([]string{two, one, two}, ",")
	early := s.call(key, "GET", path+","+pending, "")
	equal(t, early.refused(http.StatusConflict, domain.CodeConflict)["details"], any([]any{map[string]any{"path": "ids[2]", "message": "job " + pending + " is pending"}}))

	alone := func(id string) any {
		return s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
	}
	equal(t, s.call(key, "GET", path, "").want(http.StatusOK), map[string]any{
		"reports": []any{alone(two), alone(one)},
	})
	var suites struct {
		Tests  int `xml:"tests,attr"`
		Suites []struct {
			ID string `xml:"id,attr"`
		} `xml:"testsuite"`
	}
	must.NoError(t, xml.Unmarshal(s.call(key, "GET", path+"&format=junit", "").Body.Bytes(), &suites))
	equal(t, []int{len(suites.Suites), suites.Tests}, []int{2, 3})
	equal(t, suites.Suites[0].ID, two)
	equal(t, s.call(key, "GET", path+"&format=ctrf", "").Code, http.StatusOK)
	md := s.call(key, "GET", path+"&format=md", "").Body.String()
	if strings.Count(md, "\n## ") != 2 || strings.Count(md, "\n[data ") != 1 {
		t.Errorf("the Markdown is %s", md)
	}

	many := strings.Repeat(one+",", 3)
	for n := range 101 {
		many += fmt.Sprint(n) + ","
	}
	equal(t, s.call(key, "GET", "/v1/jobs/report?ids="+many, "").paths(), []string{"ids"})
	equal(t, s.call(key, "GET", "/v1/jobs/report", "").paths(), []string{"ids"})
	_, other := s.account(100)
	s.call(other, "GET", path, "").refused(http.StatusNotFound, domain.CodeNotFound)
}

func TestABatchsReportNamesTheJobsThatHaveNone(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(3, nil)).want(http.StatusCreated)
	jobIDs := texts(batch["jobIds"])
	path := fmt.Sprintf("/v1/jobs/bulk/%s/report", batch["batchId"])
	s.claims(s.checker(), jobIDs[0]).checks(passes).completes("Fine.")
	s.claims(s.checker(), jobIDs[2]).checks(fails).completes("Broken.")
	s.call(key, "POST", "/v1/jobs/"+jobIDs[1]+"/cancel", "").want(http.StatusOK)

	alone := func(id string) any {
		return s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)
	}
	equal(t, s.call(key, "GET", path, "").want(http.StatusOK), map[string]any{
		"batchId": batch["batchId"], "reports": []any{alone(jobIDs[0]), alone(jobIDs[2])},
		"withoutReport": []any{map[string]any{"jobId": jobIDs[1], "status": "cancelled"}},
	})

	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Cases []struct {
				Error struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	must.NoError(t, xml.Unmarshal(s.call(key, "GET", path+"?format=junit", "").Body.Bytes(), &suites))
	equal(t, []int{len(suites.Suites), suites.Tests, suites.Failures, suites.Errors, suites.Skipped}, []int{3, 3, 1, 1, 0})
	equal(t, suites.Suites[1].Cases[0].Error.Message, "the job was cancelled (client)")
	md := s.call(key, "GET", path+"?format=md", "").Body.String()
	if !strings.Contains(md, "\n## Test 1\n\n- **Result:** none, the job was cancelled (client)\n") {
		t.Errorf("the Markdown is %s", md)
	}
}
