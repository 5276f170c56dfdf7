// Package job is the life of one test: submitted, claimed, completed. Everything here
// is pure: time and ids come in with the command. Secrets come in sealed.
//
// A file holds a topic: its events, and the decisions that write them. Every decision
// returns the events to write, none for a harmless repeat, or the refusal. The caller has
// checked the right to see the job.
package job

import (
	"slices"

	"humanqa/domain"
)

// Specs lists the events for the codec.
func Specs() []domain.EventSpec {
	return slices.Concat(
		domain.Specs(
			&Voided{}, &SlotStarted{}, &Claimed{}, &Released{}, &Heartbeat{}, &FindingWithdrawn{}, &QuestionClosed{}, &Cancelled{},
			&SLAMissed{}, &CommitStatusSet{}, &CommitStatusAbandoned{}, &EvidenceExpired{}, &HoldPlaced{}, &HoldReleased{}, &Erased{},
			&SecretShown{},
			&DisputeDecided{}, &DisputeSettled{},
		),
		domain.WithSealedTexts(
			&Created{}, &ChecklistWritten{}, &ItemChecked{}, &FindingAdded{}, &FindingEdited{}, &RecordingAttached{}, &MomentMarked{},
			&QuestionAsked{}, &AnswerGiven{}, &Completed{}, &AIReportReady{}, &Rated{}, &UntestableReported{}, &Failed{},
			&CommitStatusRequested{},
		),
		domain.SealedFromTheFirst(&Disputed{}, &DisputeAnswered{}),
	)
}
