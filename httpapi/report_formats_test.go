package httpapi

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/internal/must"
	"humanqa/projections/jobs"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant:\n%s", name, got, want)
	}
}

// The fixed reports that the golden files show.

var (
	reportCreated   = time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.UTC)
	reportClaimed   = reportCreated.Add(10 * time.Minute)
	reportCompleted = reportCreated.Add(25*time.Minute + 500*time.Millisecond)
)

func plainReport() testedJob {
	item := func(n int, text string, severity job.Severity, status job.ItemStatus, note, reason string) job.ReportItem {
		return job.ReportItem{
			Item:   job.Item{ID: fmt.Sprintf("item-%d", n), Key: fmt.Sprintf("key-%d", n), Description: text, Severity: severity},
			Status: status, Note: note, Reason: reason,
		}
	}
	failed := item(2, "The card is charged once", job.Critical, job.ItemFail, "It is charged twice.", "")
	failed.ExpectedOutcome, failed.ScreenshotURL = "one receipt", "https://qa.example/e/1.png?a=1&b=2"
	return testedJob{
		Outline: jobs.Outline{
			ID: "0198a000-0000-7000-8000-000000000001",
			Submission: job.Submission{
				ProjectID: "0198a000-0000-7000-8000-00000000000a", Title: "Checkout", URL: "https://example.com/shop?a=1&b_c=2",
				Type: job.PaymentFlow, TypeEcho: "Payment Flow", Target: job.Target{Device: "phone", Browser: "Firefox"},
			},
			Progress: jobs.Progress{
				Status: job.StatusCompleted, ReportID: "0198a000-0000-7000-8000-0000000000ff", OverallStatus: job.OverallFail,
				CreatedAt: reportCreated, ClaimedAt: &reportClaimed, CompletedAt: &reportCompleted,
			},
		},
		page: "https://qa.example/dashboard/jobs/0198a000-0000-7000-8000-000000000001",
		report: &jobs.Report{
			OverallStatus: job.OverallFail, PassCount: 1, FailCount: 2, SkipCount: 1, Summary: "The card is charged twice.",
			RecordingURL: "https://qa.example/e/1.webm", CreatedAt: reportCompleted,
			Items: []job.ReportItem{
				item(1, "The cart opens", job.Major, job.ItemPass, "", ""), failed,
				item(3, "Mail arrives", job.Minor, job.ItemSkip, "No mailbox was given.", "no_access"),
				item(4, "The footer is readable", job.Minor, job.ItemFail, "", ""),
			},
		},
	}
}

// hostileReport tries to break out of every format.
func hostileReport() testedJob {
	t := plainReport()
	t.Title = "# <b>x</b> | ]]> \x00\x1b[31m \u202egnp.exe"
	t.URL = "https://example.com/a|b?q=<script>"
	t.report.Summary = "1. not a list\n\n## nor a heading\n```\n<img src=x onerror=alert(1)>"
	t.report.RecordingURL = "https://example.com/v|1_2.webm"
	t.report.Items = t.report.Items[1:2]
	t.report.PassCount, t.report.FailCount, t.report.SkipCount = 0, 1, 0
	i := &t.report.Items[0]
	i.Description = "a | b\n| --- |\n[click](javascript:alert(1)) &lt; `x` *y* _z_ ~~w~~ \\"
	i.Note = "]]></failure><testcase name=\"forged\"/>\x0b\ufffe\r\n& more"
	return t
}

func unreported() testedJob {
	t := plainReport()
	t.ID, t.Title = "0198a000-0000-7000-8000-000000000002", "Sign-up"
	t.page = "https://qa.example/dashboard/jobs/" + t.ID
	t.Status, t.ReportID, t.OverallStatus, t.report, t.CompletedAt = job.StatusFailed, "", "", nil, nil
	t.FailReason, t.FailedAt = job.FailSLA, &reportCompleted
	return t
}

func TestReportsInEveryFormat(t *testing.T) {
	t.Parallel()
	batch := "0198a000-0000-7000-8000-0000000000bb"
	for name, o := range map[string]outcome{
		"job":     {title: "Checkout", jobs: []testedJob{plainReport()}},
		"hostile": {title: "hostile", jobs: []testedJob{hostileReport()}},
		"batch":   {title: "Batch " + batch, batchID: batch, jobs: []testedJob{plainReport(), unreported()}},
	} {
		for _, f := range reportFormats[1:] {
			ans, err := f.answer(nil, o)
			must.NoError(t, err)
			got := ans.body
			format := f.names[0]
			switch format {
			case "junit":
				wellFormed(t, got)
			case "ctrf":
				var pretty bytes.Buffer
				must.NoError(t, json.Indent(&pretty, got, "", "  "))
				got = append(pretty.Bytes(), '\n')
			}
			golden(t, "report."+name+"."+format, got)
		}
	}
}

func wellFormed(t *testing.T, raw []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(raw))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if start, ok := token.(xml.StartElement); ok && len(start.Attr) > 0 && start.Attr[0].Value == "forged" {
			t.Error("a note became an element")
		}
	}
}

func TestAReportComesInTheFormatThatIsAskedFor(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	path := "/v1/jobs/" + s.tested(key, passes, fails) + "/report"
	const (
		asJSON, asXML = "application/json; charset=utf-8", "application/xml; charset=utf-8"
		asCTRF, asMD  = "application/vnd.ctrf+json; charset=utf-8", "text/markdown; charset=utf-8"
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
	for _, unknown := range []string{"xml", "JUnit", "html", "%20json"} {
		equal(t, s.call(key, "GET", path+"?format="+unknown, "").paths(), []string{"format"})
	}
}

func TestAReportThatDoesNotExistYetIs404InEveryFormat(t *testing.T) {
	t.Parallel()
	s := setup(t)
	_, key := s.account(100)
	id := s.submitted(key)
	batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(2, nil)).want(http.StatusCreated)
	s.claims(s.checker(), texts(batch["jobIds"])[0]).checks(passes).completes("Fine.")
	for _, f := range reportFormats {
		for _, path := range []string{"/v1/jobs/" + id, fmt.Sprintf("/v1/jobs/bulk/%s", batch["batchId"])} {
			r := s.call(key, "GET", path+"/report?format="+f.names[0], "")
			if r.refused(http.StatusNotFound, domain.CodeNotFound)["hint"] == nil {
				t.Errorf("%s: no hint", path)
			}
			equal(t, r.Header().Get("Retry-After"), "30")
		}
	}
}

func TestABatchsReportNamesTheJobsThatHaveNone(t *testing.T) {
	t.Parallel()
	s := setup(t)
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

	var suites junitSuites
	must.NoError(t, xml.Unmarshal(s.call(key, "GET", path+"?format=junit", "").Body.Bytes(), &suites))
	equal(t, []int{len(suites.Suites), suites.Tests, suites.Failures, suites.Errors, suites.Skipped}, []int{3, 3, 1, 1, 0})
	equal(t, suites.Suites[1].Cases[0].Error.Message, "the job was cancelled (client)")
	md := s.call(key, "GET", path+"?format=md", "").Body.String()
	if !strings.Contains(md, "\n## Test 1\n\n- **Result:** none, the job was cancelled (client)\n") {
		t.Errorf("the Markdown is %s", md)
	}
}
