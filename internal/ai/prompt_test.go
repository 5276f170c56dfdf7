package ai

import (
	"slices"
	"strings"
	"testing"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

// The query of a URL under test may hold a token. An AI review's own notes name
// the addresses it was led to, and clients and checkers paste addresses, too.
func TestNoPromptHoldsAURLsQuery(t *testing.T) {
	t.Parallel()
	site := plainSite(t, routes{
		"/": redirect("/end?session=TOKEN#TOKEN"), "/end": serve(`<a href="/gone?t=TOKEN">x</a><img src="https://cdn.example.com/i.png?sig=TOKEN">`),
	})
	url := site.URL + "/?invite=TOKEN"
	reviewed, err := reviewer(t, here).Review(t.Context(), url)
	must.NoError(t, err)
	if worst := reviewed.Items[1]; worst.Status != job.ItemFail || !strings.Contains(worst.Note, site.URL+"/end?session=TOKEN") {
		t.Fatalf("the report must name the address in full: %+v", worst)
	}
	items := slices.Concat(reviewed.Items, []job.ReportItem{{
		Item:   job.Item{ID: "x", Description: "Open (HTTPS://app.example.com/a?k=TOKEN), then go on", ExpectedOutcome: "“http://app.example.com/#TOKEN”", Severity: job.Major},
		Status: job.ItemFail, Note: "saw https://app.example.com/b;p?TOKEN. " + strings.Repeat("x", promptNote),
	}})
	const brief = "see https://app.example.com/reset?code=TOKEN&x=TOKEN"
	list := command.ChecklistBrief{
		Submission: job.Submission{Type: job.Custom, URL: url, Title: brief, Description: brief, Feature: brief},
		Opening:    []job.Item{{Key: "opens", Description: brief}},
		Failures:   []command.Regression{{Item: job.Item{Description: brief}}},
	}
	analysis := command.AnalysisBrief{
		Submission: job.Submission{
			Type: job.AIReview, URL: url, Title: brief, Description: brief, Feature: brief, Target: job.Target{Device: brief},
		},
		Report: job.Completed{Items: items},
	}
	for name, data := range map[string]any{"checklist": checklistPrompt(list), "analysis": analysisPrompt(analysis)} {
		text, err := asData(data)
		must.NoError(t, err)
		if strings.Contains(text, "TOKEN") {
			t.Errorf("the prompt for a %s holds a query: %s", name, text)
		}
	}
	shown := analysisPrompt(analysis).FailedItems
	last := shown[len(shown)-1]
	if last.Check != "Open (HTTPS://app.example.com/a then go on" || !strings.HasPrefix(last.Note, "saw https://app.example.com/b;p xxx") {
		t.Errorf("more than queries is missing: %+v", last)
	}
}
