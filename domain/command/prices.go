package command

import (
	"humanqa/domain"
	"humanqa/domain/job"
)

// Price is the price of one job, in credits (decisions, "Prices"). Urgent is exactly
// twice the normal price.
func Price(t job.Type, urgent bool) domain.Credits {
	price := domain.Credits(5)
	if t == job.AIReview {
		price = 2
	}
	if urgent {
		price *= 2
	}
	return price
}

// estimate says in how many minutes a job should be done: the SLA, half of it
// when urgent, never less than five (decisions,
// "estimatedCompletionMinutes").
func estimate(slaMinutes int, urgent bool) int {
	if urgent {
		slaMinutes /= 2
	}
	return max(slaMinutes, 5)
}
