package report

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

// The Common Test Report Format, version 1.0.0 (ctrf.io). Values without a field go into
// its extra objects.

type ctrfReport struct {
	ReportFormat string         `json:"reportFormat"`
	SpecVersion  string         `json:"specVersion"`
	ReportID     string         `json:"reportId"`
	Timestamp    wire.Timestamp `json:"timestamp"`
	GeneratedBy  string         `json:"generatedBy"`
	Results      ctrfResults    `json:"results"`
}

type ctrfResults struct {
	Tool    ctrfTool    `json:"tool"`
	Summary ctrfSummary `json:"summary"`
	Tests   []ctrfTest  `json:"tests"`
	Extra   ctrfExtra   `json:"extra"`
}

type ctrfTool struct {
	Name string `json:"name"`
}

type ctrfSummary struct {
	Tests    int   `json:"tests"`
	Passed   int   `json:"passed"`
	Failed   int   `json:"failed"`
	Pending  int   `json:"pending"`
	Skipped  int   `json:"skipped"`
	Other    int   `json:"other"`
	Suites   int   `json:"suites"`
	Start    int64 `json:"start"` // milliseconds since 1970
	Stop     int64 `json:"stop"`
	Duration int64 `json:"duration"`
}

// ctrfTest has no duration of its own: no clock runs for single items.
type ctrfTest struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Status    string    `json:"status"`
	Duration  int       `json:"duration"`
	Suite     []string  `json:"suite"`
	Message   string    `json:"message,omitempty"`
	RawStatus string    `json:"rawStatus"`
	Tags      []string  `json:"tags,omitempty"`
	Type      string    `json:"type"`
	Browser   string    `json:"browser,omitempty"`
	Device    string    `json:"device,omitempty"`
	Extra     ctrfExtra `json:"extra"`
}

type ctrfExtra map[string]any

func writeCTRF(o Outcome) ([]byte, error) {
	out := ctrfReport{
		ReportFormat: "CTRF", SpecVersion: "1.0.0", GeneratedBy: "humanqa",
		Results: ctrfResults{Tool: ctrfTool{Name: "humanqa"}, Tests: []ctrfTest{}, Extra: ctrfExtra{}},
	}
	var from, to time.Time
	for _, t := range o.Jobs {
		start, stop := t.span()
		if from.IsZero() || start.Before(from) {
			from = start
		}
		if stop.After(to) {
			to = stop
		}
		out.Results.Tests = append(out.Results.Tests, ctrfTests(t)...)
	}
	out.Timestamp = wire.Timestamp(to)
	s := &out.Results.Summary
	s.Suites, s.Tests = len(o.Jobs), len(out.Results.Tests)
	s.Start, s.Stop, s.Duration = from.UnixMilli(), to.UnixMilli(), to.Sub(from).Milliseconds()
	counts := map[string]int{}
	for _, t := range out.Results.Tests {
		counts[t.Status]++
	}
	s.Passed, s.Failed, s.Skipped = counts[ctrfPassed], counts[ctrfFailed], counts[ctrfSkipped]
	s.Pending = counts[ctrfPending]
	s.Other = s.Tests - s.Passed - s.Failed - s.Skipped - s.Pending
	if t, ok := o.single(); ok {
		out.ReportID = uuidOf(t.ReportID)
		out.Results.Extra = ctrfExtra{"jobId": t.ID, "url": t.URL, "overallStatus": t.OverallStatus, "summary": t.Report.Summary}
	} else if o.BatchID != "" {
		out.ReportID = uuidOf(o.BatchID)
		out.Results.Extra["batchId"] = o.BatchID
	} else {
		out.ReportID = uuidOf(strings.Join(wire.List(o.Jobs, func(t Job) string { return t.ID }), ","))
	}
	return domain.EncodeJSON(out)
}

// uuidOf gives the UUID that the format demands, for an id of any form.
func uuidOf(id string) string {
	if u, err := uuid.Parse(id); err == nil {
		return u.String()
	}
	return domain.CommandIDFor("ctrf", id).String()
}

const (
	ctrfPassed  = "passed"
	ctrfFailed  = "failed"
	ctrfSkipped = "skipped"
	ctrfPending = "pending"
	ctrfOther   = "other"
)

var ctrfStatuses = map[job.ItemStatus]string{
	job.ItemPass: ctrfPassed, job.ItemFail: ctrfFailed, job.ItemSkip: ctrfSkipped, job.ItemPending: ctrfPending,
}

func ctrfTests(t Job) []ctrfTest {
	base := ctrfTest{
		Suite: []string{t.Title}, Type: string(t.Type), Browser: t.Target.Browser, Device: t.Target.Device,
	}
	if t.Report == nil {
		base.Name, base.Status, base.RawStatus = t.Title, ctrfOther, string(t.Status)
		base.ID, base.Message, base.Extra = uuidOf(t.ID), t.reason(), ctrfExtra{"jobId": t.ID}
		return []ctrfTest{base}
	}
	var tests []ctrfTest
	for _, i := range t.Report.Items {
		one := base
		one.ID = domain.CommandIDFor("ctrf", t.ID, i.ID).String()
		one.Name, one.Status, one.RawStatus = i.Description, ctrfStatuses[i.Status], string(i.Status)
		one.Tags = []string{string(i.Severity)}
		one.Extra = ctrfExtra{"jobId": t.ID, "itemId": i.ID, "key": i.Key, "severity": i.Severity}
		if i.Status != job.ItemPass {
			one.Message = verdict(i)
		}
		for name, value := range map[string]string{
			"expectedOutcome": i.ExpectedOutcome, "skipReason": i.Reason, "screenshotUrl": i.ScreenshotURL, "note": i.Note,
		} {
			if value != "" {
				one.Extra[name] = value
			}
		}
		if all := SeveralScreenshots(i); all != nil {
			one.Extra["screenshotUrls"] = all
		}
		tests = append(tests, one)
	}
	return tests
}
