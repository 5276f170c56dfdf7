package report

import (
	"fmt"
	"strings"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
	"humanqa/projections/jobs"
)

// Dispute is a disputed verdict: the client's words, the checker's, and the decision.
type Dispute struct {
	ID              string          `json:"id"`
	ItemID          string          `json:"itemId"`
	Verdict         job.ItemStatus  `json:"verdict"` // the checker's
	Reason          string          `json:"reason"`
	DisputedAt      wire.Timestamp  `json:"disputedAt"`
	AnswerUntil     wire.Timestamp  `json:"answerUntil"`
	Answer          *string         `json:"answer"` // null until the checker answers
	AnsweredAt      *wire.Timestamp `json:"answeredAt"`
	Decision        *string         `json:"decision"` // stands, overturned, retest, refund; null until an operator decides
	DecidedAt       *wire.Timestamp `json:"decidedAt"`
	CreditsRefunded domain.Credits  `json:"creditsRefunded"`
	RetestJobID     *string         `json:"retestJobId"` // null until it is there
}

// DisputeOf shows a dispute.
func DisputeOf(d job.Dispute) Dispute {
	shown := Dispute{
		ID: d.DisputeID, ItemID: d.ItemID, Verdict: d.Verdict, Reason: d.Reason, DisputedAt: wire.Timestamp(d.At),
		AnswerUntil: wire.Timestamp(d.AnswerUntil), Decision: wire.OrNull(string(d.Decision())),
	}
	if a := d.Answered; a != nil {
		shown.Answer, shown.AnsweredAt = &a.Text, wire.Stamp(&a.At)
	}
	if r := d.Decided; r != nil {
		shown.DecidedAt, shown.CreditsRefunded = wire.Stamp(&r.At), r.Refund
	}
	if d.Settled != nil {
		shown.RetestJobID = wire.OrNull(d.Settled.RetestJobID)
	}
	return shown
}

// withDisputes adds both words and the decision to the notes of disputed items, for formats
// without a place of their own for them.
func withDisputes(r *jobs.Report) {
	for _, d := range r.Disputes {
		note := fmt.Sprintf("The client disputed the verdict %q: %s", d.Verdict, d.Reason)
		if d.Answered != nil {
			note += " The checker answered: " + d.Answered.Text
		}
		for i := range r.Items {
			if item := &r.Items[i]; item.ID == d.ItemID {
				item.Note = strings.TrimSpace(item.Note + "\n" + note + " " + DecisionWords(d.Decision()))
			}
		}
	}
}

// DecisionWords say how a dispute was decided.
func DecisionWords(r job.Ruling) string {
	return map[job.Ruling]string{
		job.Stands:     "An operator decided: the verdict stands.",
		job.Overturned: "An operator decided: the verdict does not count.",
		job.Retested:   "An operator decided: a free retest.",
		job.Refunded:   "An operator decided: a refund of the test.",
		"":             "An operator has not decided yet.",
	}[r]
}
