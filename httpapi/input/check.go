package input

import (
	"cmp"
	"strings"

	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/httpapi/wire"
)

// readVerdict reads the required status of an item.
func readVerdict(o wire.Object, name string, values ...job.ItemStatus) string {
	return o.RequiredOneOf(name, wire.Words(values)...)
}

// checkSkipReason: a skip carries a reason, nothing else does.
func checkSkipReason(o wire.Object, status job.ItemStatus, reason string) {
	switch {
	case status == job.ItemSkip && reason == "":
		o.Wrong("reason", "is required for a skip: %s", wire.OneOfWords(job.SkipReasons()))
	case (status == job.ItemPass || status == job.ItemFail || status == job.ItemPending) && reason != "":
		o.Wrong("reason", "only a skip has a reason")
	}
}

// Summary reads the checker's summary. A completion cannot be taken back, so a summary
// that would be lost under another name is refused.
func Summary(o wire.Object) string {
	for _, name := range []string{"summary", "checkerSummary"} { // the report's name of it
		if words := o.Optional(name, maxSummary); words != "" {
			return words
		}
	}
	for _, name := range o.Unread() {
		if name != "recordingUrl" && tellsSomething(name, o.Peek(name)) {
			o.Wrong(cmp.Or(wire.Clip(name, wire.MaxWord), "body"), "is not known, and reads like the summary: send it as summary")
		}
	}
	return ""
}

// tellsSomething says whether a field reads like words for people: by its name,
// or because there is more than one word in it.
func tellsSomething(name, text string) bool {
	if strings.TrimSpace(text) == "" {
		return false
	}
	return len(strings.Fields(text)) > 1 || strings.Contains(strings.ToLower(name), "summary") || wire.Near(name, "summary")
}

func Check(o wire.Object, itemID string) command.CheckItem {
	in := command.CheckItem{
		ItemID:   itemID,
		Status:   job.ItemStatus(readVerdict(o, "status", job.ItemPass, job.ItemFail, job.ItemSkip, job.ItemPending)),
		Note:     o.Optional("note", maxNote),
		Severity: readSeverity(o, ""),
		Reason:   o.OneOf("reason", "", job.SkipReasons()...),
	}
	checkSkipReason(o, in.Status, in.Reason)
	return in
}

func Finding(o wire.Object) (in job.Finding) {
	in.Item.Key = strings.TrimSpace(o.Optional("key", maxItemKey))
	in.Item.Description = o.Required("description", maxItemText)
	in.Status = job.ItemStatus(readVerdict(o, "status", job.ItemPass, job.ItemFail))
	in.Note = o.Optional("note", maxNote)
	in.Item.Severity = readSeverity(o, job.Major)
	return in
}

func Untestable(o wire.Object) (reason, note string) {
	return o.Required("reason", maxItemText), o.Optional("note", maxNote)
}

const (
	minRating = 1
	maxRating = 5
)

// Rating reads a checker's stars, which are required, and the note beside them.
func Rating(o wire.Object) (stars int, note string) {
	const name = "rating"
	stars, ok := o.Integer(name)
	if !o.Broken() && (!ok || stars < minRating || stars > maxRating) {
		o.Wrong(name, "must be a whole number from %d to %d", minRating, maxRating)
	}
	return stars, o.Optional("note", maxNote)
}

// Play reads the results that a robot checker is to give, and the question that it is to
// ask before; nil: none.
func Play(o wire.Object) (results []command.PlayResult, summary string, question *command.PlayQuestion) {
	for _, c := range o.Objects("results", maxItems) {
		results = append(results, readPlayResult(c))
	}
	if q, asks := o.Child("question"); asks {
		question = &command.PlayQuestion{
			Item: q.Optional("item", maxItemKey), Kind: q.OneOf("kind", "other", job.QuestionKinds()...),
			Text: q.Required("text", maxQuestion),
		}
	}
	return results, o.Optional("summary", maxSummary), question
}

// readPlayResult reads the robot's result for one item. A skip without a reason was
// blocked.
func readPlayResult(o wire.Object) command.PlayResult {
	in := command.PlayResult{
		Item:     o.Required("item", maxItemKey),
		Status:   job.ItemStatus(readVerdict(o, "status", job.ItemPass, job.ItemFail, job.ItemSkip)),
		Reason:   o.OneOf("reason", "", job.SkipReasons()...),
		Note:     o.Optional("note", maxNote),
		Severity: readSeverity(o, ""),
	}
	if in.Status != job.ItemSkip && in.Reason != "" {
		o.Wrong("reason", "only a skip has a reason")
	}
	return in
}

// Mark reads the note on a marked moment of a session.
func Mark(o wire.Object) (note string) {
	return strings.TrimSpace(o.Optional("note", maxMark))
}
