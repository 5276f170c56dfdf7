package auditlog

import (
	"encoding/json"
	"strings"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/internal/tabular"
)

// EventColumns are the columns of the log as a table. A position is two numbers, which
// are equal in nearly every log. data is the event's own JSON, without sealed texts.
var EventColumns = []tabular.Column{
	{Name: "position", Kind: tabular.Number}, {Name: "prepare_position", Kind: tabular.Number},
	{Name: "stream"}, {Name: "revision", Kind: tabular.Number}, {Name: "id"}, {Name: "type"},
	{Name: "time", Kind: tabular.Moment}, {Name: "actor"}, {Name: "account_id"}, {Name: "request_id"}, {Name: "data", Kind: tabular.Object},
}

// EventRow is an event as a row; words replace sealed texts.
func EventRow(e eventstore.RawEvent, meta domain.Metadata, words string) []any {
	return eventRow(e, meta, meta.Actor, eventstore.RedactBy(e.Type, e.Whole(), words, nil))
}

func eventRow(e eventstore.RawEvent, meta domain.Metadata, actor string, data []byte) []any {
	var at any
	if !meta.Time.IsZero() {
		at = meta.Time
	}
	return []any{
		int64(e.Position.Commit), int64(e.Position.Prepare),
		e.Stream, int64(e.Revision), e.ID.String(), e.Type,
		at, actor, meta.AccountID, meta.CorrelationID, json.RawMessage(data),
	}
}

// withheld are the fields of its own events that an account does not see.
var withheld = map[string]string{"checkerId": "[withheld]"}

// actorOf is the actor as the account may know it.
func actorOf(actor string) string {
	switch kind, _, _ := strings.Cut(actor, ":"); kind {
	case "checker", "operator":
		return kind
	}
	return actor
}
