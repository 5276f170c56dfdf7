package input

import (
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

// Question reads a checker's question to the client.
func Question(o wire.Object) command.AskQuestion {
	in := command.AskQuestion{Text: o.Required("text", maxQuestion), ItemID: o.Optional("itemId", wire.MaxWord)}
	in.Kind = o.OneOf("kind", job.QuestionKinds()[len(job.QuestionKinds())-1], job.QuestionKinds()...)
	return in
}

// Answer reads the client's answer. A secret alone is an answer, too.
func Answer(o wire.Object, questionID string) command.AnswerQuestion {
	in := command.AnswerQuestion{QuestionID: questionID, Text: o.Optional("text", maxAnswer), Secret: o.Optional("secret", maxAnswer)}
	if in.Text == "" && in.Secret == "" {
		o.Wrong("text", "must not be blank without a secret")
	}
	return in
}

// Dispute reads what the client disputes, and why.
func Dispute(o wire.Object) (itemID, reason string) {
	return o.Required("itemId", wire.MaxWord), o.Required("reason", maxQuestion)
}

// DisputeAnswer reads the checker's answer to a dispute.
func DisputeAnswer(o wire.Object) string { return o.Required("text", maxAnswer) }
