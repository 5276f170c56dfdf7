package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/eventstore"
)

type replayCmd struct {
	Stream string `arg:"" help:"Such as job-<id>, credits-<account id>, project-<id>."`
}

// replayed is one line of the JSON form.
type replayed struct {
	Stream   string          `json:"stream"`
	Revision uint64          `json:"revision"`
	Position string          `json:"position"`
	ID       uuid.UUID       `json:"id"`
	Type     string          `json:"type"`
	Meta     json.RawMessage `json:"meta"`
	Data     json.RawMessage `json:"data"`
}

func (c *replayCmd) Run(ctx context.Context, a *app) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		events := 0
		err := core.log.ReadRaw(ctx, c.Stream, func(e eventstore.RawEvent) error {
			events++
			data := eventstore.Redact(e.Type, e.Data)
			if a.json {
				return json.NewEncoder(a.out).Encode(replayed{
					Stream: e.Stream, Revision: e.Revision, Position: e.Position.String(),
					ID: e.ID, Type: e.Type, Meta: e.Meta, Data: data,
				})
			}
			_, err := fmt.Fprintln(a.out, replayLine(e, data))
			return err
		})
		if err == nil && events == 0 {
			err = domain.NotFound("stream " + c.Stream).WithHint(
				"streams are named by what they hold, such as job-<id> or credits-<account id>")
		}
		return err
	})
}

// replayLine shows when, what, who and the event's own words.
func replayLine(e eventstore.RawEvent, data []byte) string {
	var meta domain.Metadata
	when, who := "-", "-"
	if json.Unmarshal(e.Meta, &meta) == nil {
		when, who = meta.Time.UTC().Format("2006-01-02T15:04:05.000Z"), meta.Actor
	}
	return fmt.Sprintf("%4d  %s  %-28s %s  by %s", e.Revision, when, e.Type, data, who)
}
