// The main job by the client of ogen, with what httpapi's test gives it.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"humanqa/tools/clients/generated/ogen"
)

func main() {
	ctx := context.Background()
	client, checker := as("API_KEY"), as("CHECKER_KEY")
	project := os.Getenv("PROJECT_ID")
	submitted := answer[*ogen.SubmittedJobHeaders](client.SubmitJob(ctx, &ogen.NewJob{
		URL: "https://shop.example.com/", Title: "Checkout", Description: "Buy something", JobType: "Custom", ProjectId: ogen.NewOptNilString(project),
		ChecklistItems: ogen.NewOptNilNewChecklistItemArray([]ogen.NewChecklistItem{
			{Description: "The page loads"},
			{Description: "The button works", Severity: ogen.NewOptNilSeverityInput("critical")},
		}),
	}, ogen.SubmitJobParams{}))
	id := submitted.Response.JobId
	claimed := answer[*ogen.ClaimHeaders](checker.ClaimJob(ctx, ogen.NewOptNewClaim(ogen.NewClaim{JobId: ogen.NewOptNilString(string(id))}), ogen.ClaimJobParams{}))
	token := claimed.Response.ClaimToken
	for _, item := range claimed.Response.Checklist {
		verdict := &ogen.Verdict{Status: "pass"}
		if item.Severity == ogen.SeverityCritical {
			verdict = &ogen.Verdict{Status: "fail", Note: ogen.NewOptNilString("It is dead.")}
		}
		answer[*ogen.CheckedItemHeaders](checker.CheckItem(ctx, verdict, ogen.CheckItemParams{XClaimToken: token, ID: id, ItemId: item.ID}))
	}
	completion := ogen.Completion{Summary: ogen.NewOptNilString("One of two works.")}
	answer[*ogen.CompletedJobHeaders](checker.CompleteJob(ctx, ogen.NewOptCompletion(completion), ogen.CompleteJobParams{XClaimToken: token, ID: id}))
	report := answer[*ogen.ReportHeaders](client.GetReport(ctx, ogen.GetReportParams{ID: id})).Response
	history := answer[*ogen.ProjectHistoryHeaders](client.ProjectHistory(ctx, ogen.ProjectHistoryParams{ID: ogen.ID(project)})).Response
	fmt.Println(report.OverallStatus, report.PassCount, report.FailCount, report.CheckerSummary)
	fmt.Println(history.TotalTests, history.LatestFailures[0].Description)
}

// key is a variable with a key.
type key string

func (k key) Bearer(context.Context, ogen.OperationName) (ogen.Bearer, error) {
	return ogen.Bearer{Token: os.Getenv(string(k))}, nil
}

func as(k key) *ogen.Client {
	client, err := ogen.NewClient(os.Getenv("BASE_URL"), k)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// answer is what an operation answers where it succeeds.
func answer[T any](res any, err error) T {
	want, ok := res.(T)
	if err != nil || !ok {
		log.Fatalf("%T: %v", res, err)
	}
	return want
}
