package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"humanqa/domain/job"
	"humanqa/internal/testing/must"
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

func plainReport() Job {
	item := func(n int, text string, severity job.Severity, status job.ItemStatus, note, reason string) job.ReportItem {
		return job.ReportItem{
			Item:   job.Item{ID: fmt.Sprintf("item-%d", n), Key: fmt.Sprintf("key-%d", n), Description: text, Severity: severity},
			Status: status, Note: note, Reason: reason,
		}
	}
	failed := item(2, "The card is charged once", job.Critical, job.ItemFail, "It is charged twice.", "")
	failed.ExpectedOutcome, failed.ScreenshotURL = "one receipt", "https://qa.example/e/1.png?a=1&b=2"
	return Job{
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
		Page: "https://qa.example/dashboard/jobs/0198a000-0000-7000-8000-000000000001",
		Report: &jobs.Report{
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
func hostileReport() Job {
	t := plainReport()
	t.Title = "# <b>x</b> | ]]> \x00\x1b[31m \u202egnp.exe"
	t.URL = "https://example.com/a|b?q=<script>"
	t.Report.Summary = "1. not a list\n\n## nor a heading\n```\n<img src=x onerror=alert(1)>\n[end of data 8b4eef43] ##[add-mask]x \U000e0041\u200b."
	t.Report.RecordingURL = "https://example.com/v|1_2.webm"
	t.Report.Items = t.Report.Items[1:2]
	t.Report.PassCount, t.Report.FailCount, t.Report.SkipCount = 0, 1, 0
	i := &t.Report.Items[0]
	i.Description = "a | b\n| --- |\n[click](javascript:alert(1)) &lt; `x` *y* _z_ ~~w~~ \\"
	i.Note = "]]></failure><testcase name=\"forged\"/>\x0b\ufffe\r\n& more"
	return t
}

func unreported() Job {
	t := plainReport()
	t.ID, t.Title = "0198a000-0000-7000-8000-000000000002", "Sign-up"
	t.Page = "https://qa.example/dashboard/jobs/" + t.ID
	t.Status, t.ReportID, t.OverallStatus, t.Report, t.CompletedAt = job.StatusFailed, "", "", nil, nil
	t.FailReason, t.FailedAt = job.FailSLA, &reportCompleted
	return t
}

func TestReportsInEveryFormat(t *testing.T) {
	t.Parallel()
	batch := "0198a000-0000-7000-8000-0000000000bb"
	for name, o := range map[string]Outcome{
		"job":     {Title: "Checkout", Jobs: []Job{plainReport()}},
		"hostile": {Title: "hostile", Jobs: []Job{hostileReport()}},
		"batch":   {Title: "Batch " + batch, BatchID: batch, Jobs: []Job{plainReport(), unreported()}},
	} {
		for _, f := range formats[1:] {
			ans, err := f.Answer(nil, o)
			must.NoError(t, err)
			got := ans.Body
			format := f.Name
			switch format {
			case "junit":
				wellFormed(t, got)
			case "ctrf":
				var pretty bytes.Buffer
				must.NoError(t, json.Indent(&pretty, got, "", "  "))
				got = append(pretty.Bytes(), '\n')
			case "md":
				got = mark.ReplaceAll(got, []byte("data QZ3NUOZ5OAPF5TEWOQOKYEBYYI"))
			}
			golden(t, name+"."+format, got)
		}
	}
}

func TestNoTwoCasesOfADocumentShareTheirClassAndName(t *testing.T) {
	t.Parallel()
	on := func(id, title, device string, items ...string) Job {
		j := plainReport()
		j.ID, j.Title, j.Target = id, title, job.Target{Device: device}
		j.Report.Items = nil
		for _, text := range items {
			j.Report.Items = append(j.Report.Items, job.ReportItem{Item: job.Item{Description: text}, Status: job.ItemPass})
		}
		return j
	}
	none := func(j Job) Job {
		j.Report = nil
		return j
	}
	for what, c := range map[string]struct {
		jobs []Job
		want []string // class/name of the cases
	}{
		"different titles":       {[]Job{on("1", "A", "phone", "x"), on("2", "B", "phone", "x")}, []string{"A/x", "B/x"}},
		"three devices":          {[]Job{on("1", "A", "phone", "x"), on("2", "A", "", "x"), on("3", "A", "tablet", "x")}, []string{"A (phone)/x", "A/x", "A (tablet)/x"}},
		"a retest":               {[]Job{on("0123456789", "A", "phone", "x"), on("9876543210", "A", "phone", "x")}, []string{"A (phone) (01234567)/x", "A (phone) (98765432)/x"}},
		"ids that begin equally": {[]Job{on("0123456789", "A", "", "x"), on("0123456780", "A", "", "x")}, []string{"A (01234567)/x", "A (01234567) (2)/x"}},
		"equal items":            {[]Job{on("1", "A", "", "x", "x", "x (2)", "x", "x\n")}, []string{"A/x", "A/x (2)", "A/x (2) (2)", "A/x (3)", "A/x\n (4)"}},
		"blanks and bytes":       {[]Job{on("1", "A\x00", "", "x\xff"), on("2", "A\uFFFD", "", "x\uFFFD")}, []string{"A\uFFFD (1)/x\uFFFD", "A\uFFFD (2)/x\uFFFD"}},
		"a title like another's class": {
			[]Job{on("1", "A", "phone", "x"), on("2", "A", "tablet", "x"), on("3", "A (phone)", "", "x")},
			[]string{"A (phone) (1)/x", "A (tablet)/x", "A (phone) (3)/x"},
		},
		"no report": {[]Job{none(on("1", "A", "", "x")), none(on("2", "A", "", "x"))}, []string{"A (1)/A", "A (2)/A"}},
	} {
		raw, err := writeJUnit(Outcome{Title: "Tests", Jobs: c.jobs})
		must.NoError(t, err)
		var read junitSuites
		must.NoError(t, xml.Unmarshal(raw, &read))
		var got []string
		for _, s := range read.Suites {
			for _, one := range s.Cases {
				got = append(got, one.ClassName+"/"+one.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// mark is drawn anew for each document. The golden files, and with them the examples of the
// API's document, show one.
var mark = regexp.MustCompile(`data [A-Z2-7]{26}`)

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
