// Command first-test has the sign-up of https://example.com tested:
//
//	BASE_URL=… API_KEY=… go run ./integrations/clients/go/examples/first-test
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"humanqa/integrations/clients/go/humanqa"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := humanqa.New(os.Getenv("BASE_URL"), os.Getenv("API_KEY"), "first-test")
	if err != nil {
		return err
	}
	critical := humanqa.SeverityInput("critical")
	var job humanqa.SubmittedJob
	_, err = client.Do(ctx, humanqa.Call{Method: http.MethodPost, Path: "/v1/jobs", Key: humanqa.NewKey(), Body: humanqa.NewJob{
		URL: "https://example.com", Title: "Sign-up", JobType: "Custom", Description: "Can a new user sign up?",
		ChecklistItems: &[]humanqa.NewChecklistItem{{Description: "The form accepts a valid address", Severity: &critical}},
	}}, &job)
	if err != nil {
		return err
	}
	fmt.Println("submitted", job.JobID)
	if client.Sandbox() { // a robot tests
		path := "/v1/sandbox/jobs/" + job.JobID + "/play"
		play := humanqa.Call{Method: http.MethodPost, Path: path, Body: humanqa.Play{Summary: new("Works.")}}
		if _, err := client.Do(ctx, play, nil); err != nil {
			return err
		}
	}
	ended, err := client.Wait(ctx, job.JobID, nil)
	if err != nil {
		return err
	}
	if ended.Result == nil {
		fmt.Println(ended.Status, ended.StatusMessage)
	} else {
		fmt.Println(ended.Result.OverallStatus, ended.Result.Summary)
	}
	for tested, err := range humanqa.List[humanqa.JobSummary](ctx, client, "/v1/jobs?status=completed&limit=1", "jobs") {
		if err != nil {
			return err
		}
		fmt.Println("tested", tested.ID, tested.Title)
	}
	return nil
}
