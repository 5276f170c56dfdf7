package ai

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/fence"
)

// Analyse implements command.AI.
func (*Rules) Analyse(_ context.Context, b command.AnalysisBrief) (job.AIReport, error) {
	return analysisByRules(b), nil
}

func analysisByRules(b command.AnalysisBrief) job.AIReport {
	items := b.Report.Items
	pass, fail, skip := job.Counts(items)
	r := job.AIReport{
		HealthScore: job.HealthScore(items),
		PassCount:   pass, FailCount: fail, SkipCount: skip,
		Bugs:            bugs(b),
		Strengths:       strengths(items),
		Recommendations: recommendations(b),
		GeneratedBy:     byRules,
	}
	r.ExecutiveSummary = fence.Clean(strings.Join([]string{headline(b), worst(items, r.Bugs)}, " "), maxSummary)
	return r
}

// headline is the sentence with the checker's result. No writer may change it.
func headline(b command.AnalysisBrief) string {
	pass, fail, skip := job.Counts(b.Report.Items)
	said := map[string]string{
		job.OverallPass: "passed", job.OverallFail: "failed", job.OverallInconclusive: "was inconclusive",
	}[job.OverallStatus(b.Report.Items)]
	return fmt.Sprintf("The %s of %s %s: of %s, %d passed, %d failed and %d %s skipped. The health score is %d of 100.",
		b.Type.Analysis(), fence.Clean(b.URL, maxShownURL), said, counted(pass+fail+skip, "check"), pass, fail, skip, wasOrWere(skip),
		job.HealthScore(b.Report.Items))
}

// worst names the gravest bugs.
func worst(items []job.ReportItem, bugs []job.Bug) string {
	switch pass, _, _ := job.Counts(items); {
	case len(bugs) > 0:
	case pass == 0:
		return "Nothing could be checked."
	default:
		return "Nothing that was checked failed."
	}
	named := make([]string, 0, 3)
	for _, bug := range bugs[:min(3, len(bugs))] {
		named = append(named, fmt.Sprintf("%s (%s)", quote(bug.Title), bug.Severity))
	}
	if len(named) == 1 {
		return fmt.Sprintf("What failed is %s.", named[0])
	}
	return fmt.Sprintf("The gravest failures are %s and %s.",
		strings.Join(named[:len(named)-1], ", "), named[len(named)-1])
}

// rank orders severities, gravest first.
func rank(s job.Severity) int {
	return slices.Index([]job.Severity{job.Critical, job.Major, job.Minor}, s)
}

// bugs are the failed items, gravest first, else in the report's order.
func bugs(b command.AnalysisBrief) []job.Bug {
	found := []job.Bug{}
	for _, i := range withStatus(b.Report.Items, job.ItemFail) {
		found = append(found, bug(b, i))
	}
	slices.SortStableFunc(found, func(a, b job.Bug) int { return rank(a.Severity) - rank(b.Severity) })
	return found
}

func bug(b command.AnalysisBrief, i job.ReportItem) job.Bug {
	note, expected := fence.Clean(i.Note, maxItemText), fence.Clean(i.ExpectedOutcome, maxItemText)
	description := "The check failed; the checker left no note."
	if b.Type.Automatic() {
		description = "The check failed."
	}
	if note != "" {
		description = sawBy(b.Type, "The %s: ") + sentence(note)
	}
	if expected != "" {
		description += " Expected: " + sentence(expected)
	}
	title := strings.TrimSuffix(fence.Clean(i.Description, maxTitle), ".")
	if title == "" {
		title = "A check without a description failed"
	}
	return job.Bug{
		ItemID: i.ID, Title: title, Severity: i.Severity,
		Description:       fence.Clean(description, maxBugText),
		ReproductionSteps: []string{}, // only the checker knows them
		SuggestedFix:      topicByKey[i.Key].fix,
	}
}

// sawBy says where a note is from: no checker takes part in a review.
func sawBy(kind job.Type, words string) string {
	by := "checker saw"
	if kind.Automatic() {
		by = "review found"
	}
	return fmt.Sprintf(words, by)
}

func target(t job.Target) string {
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"", t.Device}, {"", t.OS}, {"", t.Browser}, {"screen ", t.ScreenSize}, {"network ", t.Network},
	} {
		if value := fence.Clean(part.value, maxQuote); value != "" {
			parts = append(parts, part.name+value)
		}
	}
	return strings.Join(parts, ", ")
}

// strengths names the topics in which every checked item passed.
func strengths(items []job.ReportItem) []string {
	byTopic := make(map[string][]job.ReportItem)
	for _, i := range items {
		label := topicOf(i).Label
		byTopic[label] = append(byTopic[label], i)
	}
	points := []string{}
	for _, t := range append(slices.Clone(catalogue.Topics), topic{Label: security}, general) {
		passed := withStatus(byTopic[t.Label], job.ItemPass)
		if len(passed) == 0 || len(withStatus(byTopic[t.Label], job.ItemFail)) > 0 || len(points) == maxPoints {
			continue
		}
		points = append(points, fence.Clean(fmt.Sprintf("%s: %s passed, such as %s.",
			t.Label, counted(len(passed), "check"), quote(passed[0].Description)), maxPoint))
	}
	return points
}

// skipAdvice says what to do about items that were skipped, by their reason.
var skipAdvice = []struct{ reason, because, advice string }{
	{"no_access", "the checker had no access", "Give credentials or access instructions, then test again"},
	{"blocked", "it was blocked", "Remove the cause, then test again"},
	{"out_of_time", "the time ran out", "Split the test, or give it a longer SLA"},
	{"not_applicable", "it does not apply to the app", "Drop or reword the check"},
}

func recommendations(b command.AnalysisBrief) []string {
	items := b.Report.Items
	points := []string{}
	add := func(format string, args ...any) {
		points = append(points, fence.Clean(fmt.Sprintf(format, args...), maxPoint))
	}
	failed := withStatus(items, job.ItemFail)
	if n := len(slices.DeleteFunc(slices.Clone(failed), func(i job.ReportItem) bool { return i.Severity != job.Critical })); n > 0 {
		add("Fix %s before the next release: what customers come for does not work.", counted(n, "critical failure"))
	}
	if n := len(failed); n > 0 {
		which := "failed check"
		if n > 1 {
			which = counted(n, which)
		}
		add("After the fixes, retest the %s. The project's next test includes each item that still fails.", which)
	}
	skipped := withStatus(items, job.ItemSkip)
	for _, a := range skipAdvice {
		of := slices.DeleteFunc(slices.Clone(skipped), func(i job.ReportItem) bool { return i.Reason != a.reason })
		if len(of) > 0 {
			add("%s %s skipped because %s, such as %s. %s.",
				counted(len(of), "check"), wasOrWere(len(of)), a.because, quote(of[0].Description), a.advice)
		}
	}
	for _, label := range notCovered(b) {
		add("%s: the brief speaks of it, but no check was about it. Add one to the next test.", label)
	}
	if len(points) == 0 {
		add("Nothing is open. Repeat the test after the next change, so that it stays so.")
	}
	return points[:min(maxPoints, len(points))]
}

// notCovered lists up to three topics that the brief names and no item of the report
// covers.
func notCovered(b command.AnalysisBrief) []string {
	about := wordsOf(b.URL, b.Title, b.Description, b.Feature)
	covered := make(map[string]bool)
	for _, i := range b.Report.Items {
		covered[topicOf(i).Label] = true
		words := wordsOf(i.Description, i.ExpectedOutcome)
		for _, t := range catalogue.Topics {
			covered[t.Label] = covered[t.Label] || t.matches(words)
		}
	}
	var missing []string
	for _, t := range catalogue.Topics {
		if len(missing) < 3 && !covered[t.Label] && t.matches(about) {
			missing = append(missing, t.Label)
		}
	}
	return missing
}

func withStatus(items []job.ReportItem, status job.ItemStatus) []job.ReportItem {
	var of []job.ReportItem
	for _, i := range items {
		if i.Status == status {
			of = append(of, i)
		}
	}
	return of
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func wasOrWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
