package job_test

import (
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// A job is decided and folded: a decision takes the state and what is asked, and
// gives events or a refusal; the events make the next state. The clock and all
// ids come in with the command.
func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var j job.State
	then := func(events []domain.Event, err error) {
		if err != nil {
			fmt.Println("refused:", err)
		}
		for _, e := range events {
			j = job.Evolve(j, e)
			fmt.Println(e.EventType(), "→", j.Status)
		}
	}

	then(job.DecideCreate(j, job.Created{
		Submission: job.Submission{
			AccountID: "acme", URL: "https://shop.example", Title: "Checkout", Type: job.PaymentFlow, SLAMinutes: 30, Price: 5,
		},
		Items:     []job.Item{{ID: "item-1", Key: "pay", Description: "Pay by card", Severity: job.Critical}},
		CreatedAt: now,
	}, nil))
	then(job.DecideClaim(j, "ann", now.Add(time.Minute)))
	then(job.DecideClaim(j, "bob", now.Add(2*time.Minute))) // she was first
	then(job.DecideClaim(j, "ann", now.Add(2*time.Minute))) // a repeat decides nothing

	ann := job.Completion{CheckerID: "ann", Token: j.Token, ReportID: "report-1", At: now.Add(9 * time.Minute)}
	then(job.DecideComplete(j, ann)) // not before every item has a verdict
	then(job.DecideCheckItem(j, job.Check{
		CheckerID: "ann", Token: j.Token, ItemID: "item-1", Status: job.ItemFail, Note: "The button does nothing", At: now.Add(8 * time.Minute),
	}))
	then(job.DecideComplete(j, ann))
	then(job.DecideCancel(j, job.CancelClient, now.Add(time.Hour))) // an end absorbs

	fmt.Println("due", j.DueAt.Format(time.TimeOnly), "by the clock of the submission")
	// Output:
	// job.created → pending
	// job.claimed → claimed
	// refused: the job is claimed
	// refused: 1 item has no verdict yet
	// job.item_checked → claimed
	// job.completed → completed
	// refused: the job is completed
	// due 12:30:00 by the clock of the submission
}

func ExampleHealthScore() {
	fmt.Println(job.HealthScore([]job.ReportItem{
		{Item: job.Item{Severity: job.Critical}, Status: job.ItemFail},
		{Item: job.Item{Severity: job.Minor}, Status: job.ItemFail},
		{Item: job.Item{Severity: job.Critical}, Status: job.ItemPass},
	}))
	// Output:
	// 72
}
