// The main job by the client of oapi-codegen, with what httpapi's test gives it.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"humanqa/tools/clients/generated/api"
)

func main() {
	ctx := context.Background()
	client, checker := as("API_KEY"), as("CHECKER_KEY")
	project, critical := os.Getenv("PROJECT_ID"), api.SeverityInput("critical")
	submitted := answered(client.SubmitJobWithResponse(ctx, nil, api.NewJob{
		Url: "https://shop.example.com/", Title: "Checkout", Description: "Buy something", JobType: "Custom", ProjectId: &project,
		ChecklistItems: &[]api.NewChecklistItem{{Description: "The page loads"}, {Description: "The button works", Severity: &critical}},
	})).JSON201
	id := submitted.JobId
	claim := answered(checker.ClaimJobWithResponse(ctx, nil, api.NewClaim{JobId: &id})).JSON201
	for _, item := range claim.Checklist {
		verdict, note := api.Verdict{Status: "pass"}, "It is dead."
		if item.Severity == api.SeverityCritical {
			verdict = api.Verdict{Status: "fail", Note: &note}
		}
		answered(checker.CheckItemWithResponse(ctx, id, item.Id, &api.CheckItemParams{XClaimToken: claim.ClaimToken}, verdict))
	}
	summary := "One of two works."
	answered(checker.CompleteJobWithResponse(ctx, id, &api.CompleteJobParams{XClaimToken: claim.ClaimToken}, api.Completion{Summary: &summary}))
	report := answered(client.GetReportWithResponse(ctx, id, nil)).JSON200
	history := answered(client.ProjectHistoryWithResponse(ctx, project, nil)).JSON200
	fmt.Println(report.OverallStatus, report.PassCount, report.FailCount, report.CheckerSummary)
	fmt.Println(history.TotalTests, history.LatestFailures[0].Description)
}

// as is a client with the key of a variable.
func as(key string) *api.ClientWithResponses {
	client, err := api.NewClientWithResponses(os.Getenv("BASE_URL"), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv(key))
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	return client
}

// answered gives an answer that is no refusal.
func answered[R interface{ StatusCode() int }](answer R, err error) R {
	if err != nil || answer.StatusCode() >= http.StatusMultipleChoices {
		log.Fatalf("%+v: %v", answer, err)
	}
	return answer
}
