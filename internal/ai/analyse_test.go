package ai

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

func reportItem(id, description string, severity job.Severity, status job.ItemStatus, note, reason string) job.ReportItem {
	return job.ReportItem{
		Item:   job.Item{ID: id, Key: job.KeyFor(description), Description: description, ExpectedOutcome: "It works.", Severity: severity},
		Status: status, Note: note, Reason: reason,
	}
}

// shopReport is a report with every kind of line in it.
func shopReport() command.AnalysisBrief {
	return command.AnalysisBrief{
		Submission: job.Submission{
			AccountID: "acc-1", Type: job.PaymentFlow, URL: "https://shop.example.com/checkout?session=s3cret",
			Title: "Checkout", Description: "Pay with a test card; also look at the mobile menu and search.",
			Target: job.Target{Device: "iPhone 17", OS: "iOS 26", ScreenSize: "402x874"},
		},
		Report: job.Completed{ReportID: "rep-1", Items: []job.ReportItem{
			reportItem("item-1", "Submit the form empty.", job.Minor, job.ItemFail, "", ""),
			reportItem("item-2", "Compare price, tax and total on every page of the payment.", job.Critical, job.ItemFail, "Tax is added\ntwice", ""),
			reportItem("item-3", "Sign in with the given account", job.Major, job.ItemPass, "", ""),
			reportItem("item-4", "Sign out", job.Major, job.ItemPass, "", ""),
			reportItem("item-5", "Open the invoice.", job.Major, job.ItemSkip, "no link", "blocked"),
			reportItem("item-6", "Open the vault.", job.Major, job.ItemSkip, "", "no_access"),
			reportItem("item-7", "Write the letters", job.Critical, job.ItemFail, "gone", ""),
		}},
	}
}

func TestTheAnalysisOfAReport(t *testing.T) {
	t.Parallel()
	whole := func(status job.ItemStatus, reason string) command.AnalysisBrief {
		return command.AnalysisBrief{Submission: job.Submission{Type: job.GeneralQA, URL: "https://app.example.com/"}, Report: job.Completed{Items: []job.ReportItem{
			reportItem("item-1", "Open the page.", job.Critical, status, "", reason),
		}}}
	}
	for name, b := range map[string]command.AnalysisBrief{
		"failed": shopReport(), "passed": whole(job.ItemPass, ""), "inconclusive": whole(job.ItemSkip, "out_of_time"),
		"empty": {Submission: job.Submission{Type: job.Custom, URL: "https://app.example.com/"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := new(Rules).Analyse(t.Context(), b)
			must.NoError(t, err)
			golden(t, "analysis_"+name, report)
		})
	}
}

func wellFormedReport(t rapid.TB, b command.AnalysisBrief, r job.AIReport) {
	t.Helper()
	pass, fail, skip := job.Counts(b.Report.Items)
	if r.PassCount != pass || r.FailCount != fail || r.SkipCount != skip || r.HealthScore != job.HealthScore(b.Report.Items) {
		t.Errorf("counts %d/%d/%d and score %d are not the checker's", r.PassCount, r.FailCount, r.SkipCount, r.HealthScore)
	}
	bounded(t, "summary", r.ExecutiveSummary, 1500)
	if len(r.Bugs) != fail || r.Bugs == nil {
		t.Errorf("%d bugs, want %d", len(r.Bugs), fail)
	}
	severities := make(map[string]job.Severity)
	for _, i := range withStatus(b.Report.Items, job.ItemFail) {
		severities[i.ID] = i.Severity
	}
	for n, bug := range r.Bugs {
		if bug.Severity != severities[bug.ItemID] {
			t.Errorf("bug %s is %s, the checker said %s", bug.ItemID, bug.Severity, severities[bug.ItemID])
		}
		if n > 0 && rank(r.Bugs[n-1].Severity) > rank(bug.Severity) {
			t.Errorf("bug %d is graver than the one before it", n)
		}
		bounded(t, "title", bug.Title, 200)
		bounded(t, "bug", bug.Description, 2000)
		if bug.SuggestedFix != "" { // there may be none that fits
			bounded(t, "fix", bug.SuggestedFix, 500)
		}
		if n := len(bug.ReproductionSteps); bug.ReproductionSteps == nil || n > 10 {
			t.Errorf("%d steps", n)
		}
		for _, step := range bug.ReproductionSteps {
			bounded(t, "step", step, 1000)
		}
	}
	if r.Strengths == nil || len(r.Strengths) > 10 || len(r.Recommendations) == 0 || len(r.Recommendations) > 10 {
		t.Errorf("%d strengths, %d recommendations", len(r.Strengths), len(r.Recommendations))
	}
	for _, point := range append(r.Strengths, r.Recommendations...) {
		bounded(t, "point", point, 300)
	}
}

func TestNoReportBreaksTheAnalysis(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := command.AnalysisBrief{Submission: job.Submission{
			Type: rapid.SampledFrom(append(job.Types(), "unknown")).Draw(t, "type"),
			URL:  hostile().Draw(t, "url"), Description: hostile().Draw(t, "description"),
			Target: job.Target{Device: hostile().Draw(t, "device"), Network: hostile().Draw(t, "network")},
		}}
		for i := range rapid.IntRange(0, 6).Draw(t, "items") {
			b.Report.Items = append(b.Report.Items, job.ReportItem{
				Item: job.Item{
					ID: fmt.Sprintf("item-%d", i), Description: hostile().Draw(t, "item"), ExpectedOutcome: hostile().Draw(t, "expected"),
					Severity: rapid.SampledFrom([]job.Severity{job.Critical, job.Major, job.Minor}).Draw(t, "severity"),
				},
				Status: rapid.SampledFrom([]job.ItemStatus{job.ItemPass, job.ItemFail, job.ItemSkip}).Draw(t, "status"),
				Note:   hostile().Draw(t, "note"), Reason: rapid.SampledFrom(job.SkipReasons()).Draw(t, "reason"),
			})
		}
		report := analysisByRules(b)
		wellFormedReport(t, b, report)
		if again := analysisByRules(b); !reflect.DeepEqual(report, again) {
			t.Errorf("got %+v, then %+v", report, again)
		}
	})
}

// Advice that another bug would get, too, is none; and nobody wrote down the steps.
func TestARuleGivesNoAdviceThatAnotherBugWouldGet(t *testing.T) {
	t.Parallel()
	report := analysisByRules(shopReport())
	for _, bug := range report.Bugs {
		if bug.SuggestedFix != "" || len(bug.ReproductionSteps) > 0 {
			t.Errorf("%s: %q, %q", bug.Title, bug.SuggestedFix, bug.ReproductionSteps)
		}
	}
}
