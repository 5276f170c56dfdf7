package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"humanqa/internal/eventually"
)

// The longest test there is, in characters of four bytes, on a log that takes no
// more in one append than any does by default: it can be submitted, checked and
// completed, and is read as it was written.
func TestTheLongestTestCanBeCompletedOnALogWithTheDefaultLimit(t *testing.T) {
	t.Parallel()
	const items = 100
	long := func(n int) string { return strings.Repeat("😀", n) }
	p := newProgram(t, "HUMANQA_EVENTSTORE_MAX_APPEND=1048576")
	s := p.start()
	_, key := p.newAccount(10)
	_, checker := p.newChecker()
	var list []any
	for range items {
		list = append(list, map[string]any{"description": long(1000), "expectedOutcome": long(1000), "severity": "minor"})
	}
	id := p.call(http.StatusCreated, "POST", "/v1/jobs", key, map[string]any{
		"url": "https://example.com", "title": long(200), "jobType": "Custom", "description": long(5000),
		"accessInstructions": long(4000), "checklistItems": list,
	}).text("jobId")
	token := p.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": id}).text("claimToken")
	for i := range items {
		p.call(http.StatusOK, "PUT", fmt.Sprintf("/v1/checker/jobs/%s/items/item-%d", id, i+1), checker,
			map[string]any{"status": "fail", "note": long(2000)}, "X-Claim-Token", token)
	}
	p.call(http.StatusOK, "POST", "/v1/checker/jobs/"+id+"/complete", checker, map[string]any{"summary": long(5000)}, "X-Claim-Token", token)

	var report reply // of so much the rows may come after the answer
	eventually.True(t, "the report is shown", func() (shown bool) {
		var err error
		report, err = p.try("GET", "/v1/jobs/"+id+"/report", key, nil)
		return err == nil && report.status == http.StatusOK
	})
	if n := strings.Count(string(report.body), `:"`+long(2000)+`"`); report.number("failCount") != items || n != items {
		t.Errorf("the report has %d failed items and %d notes", report.number("failCount"), n)
	}
	p.fsck()
	s.stop()
	s = p.start() // what is folded from the log anew
	p.call(http.StatusOK, "POST", "/v1/jobs/"+id+"/rating", key, map[string]any{"rating": 5})
	s.stop()
}
