package main

import (
	"bytes"
	"strings"
	"testing"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/testing/must"
)

func TestTheSummaryNamesTheSeverityOfEachFailure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{world: world{out: &out}}
	must.NoError(t, a.summarize(outcome{Jobs: []tested{{
		Title: "Pay", Status: humanqa.JobStatusCompleted, OverallStatus: "fail", PassCount: 1, FailCount: 2, Page: "https://qa.example.com/dashboard/jobs/j",
		Failures: []humanqa.ReportItem{{Description: "The form", Severity: new(humanqa.ReportItemSeverityCritical)}, {Description: "The button"}},
	}}}))
	for _, want := range []string{"FAIL  Pay: 1 passed, 2 failed, 0 skipped\n", "\n  critical [data ", "] The form [", "\n           [data ", "] The button ["} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it lacks %q:\n%s", want, out.String())
		}
	}
}
