package credits_test

import (
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
)

// A ledger holds lots. A debit takes from those that expire soonest, and a
// refund goes back to where it came from; each job is charged once.
func Example() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	soon := now.Add(7 * 24 * time.Hour)
	var ledger credits.State
	then := func(events []domain.Event, err error) {
		if err != nil {
			fmt.Println("refused:", err)
		}
		for _, e := range events {
			ledger = credits.Evolve(ledger, e)
			fmt.Println(e.EventType(), "→", ledger.Available(now), "available,", ledger.Used(), "used")
		}
	}

	then(credits.DecideGrant(ledger, "bought", 10, nil, "invoice 7", now))
	then(credits.DecideGrant(ledger, "welcome", 5, &soon, "a present", now))
	then(credits.DecideDebits(ledger, []credits.Charge{{JobID: "job-a", Amount: 7}}, now)) // five of the present, two of the rest
	then(credits.DecideDebits(ledger, []credits.Charge{{JobID: "job-a", Amount: 7}}, now)) // a repeat decides nothing
	then(credits.DecideDebits(ledger, []credits.Charge{{JobID: "job-b", Amount: 20}}, now))
	then(credits.DecideRefund(ledger, "job-a", "client", now))
	then(credits.DecideExpire(ledger, soon))
	fmt.Println(ledger.Available(soon), "available once the present has expired")
	// Output:
	// credits.granted → 10 available, 0 used
	// credits.granted → 15 available, 0 used
	// credits.debited → 8 available, 7 used
	// refused: not enough credits: 20 required, 8 available
	// credits.refunded → 15 available, 0 used
	// credits.lot_expired → 10 available, 0 used
	// 10 available once the present has expired
}
