package v1

import (
	"context"
	"net/http"

	"humanqa/domain/command"
	"humanqa/domain/retention"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/input"
	"humanqa/httpapi/wire"
)

type evidenceBody struct {
	KeepEvidenceDays   *int       `json:"keepEvidenceDays"`
	KeepRecordingsDays *int       `json:"keepRecordingsDays"`
	Hold               *holdBody  `json:"hold"`
	Usage              usageBody  `json:"usage"`
	Estimate           *usageBody `json:"estimate,omitempty"`
}

type holdBody struct {
	Reason   string         `json:"reason"`
	Operator bool           `json:"operator"`
	PlacedAt wire.Timestamp `json:"placedAt"`
}

// usageBody is the account's evidence, in files and bytes.
type usageBody struct {
	evidence.Usage
	Due       evidence.Size `json:"due"`
	NextMonth evidence.Size `json:"nextMonth"`
}

func usageOf(u evidence.Usage) usageBody { return usageBody{u, u.Going(), u.NextMonth()} }

// getEvidence is GET /v1/evidence: how much evidence the account has, how long it is kept,
// and what goes next. With settings in the query it also tells what these would change.
func (a *Handlers) getEvidence(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	asked := retention.Keep{EvidenceDays: daysIn(q, retention.EvidenceDays), RecordingsDays: daysIn(q, retention.RecordingsDays)}
	projectID := q.Text("projectId")
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	if err := a.mayUseProject(r.Context(), r.Caller, projectID); err != nil {
		return wire.Answer{}, err
	}
	keep, hold, err := a.Commands.AccountRetention(r.Context(), r.Caller.AccountID)
	if err != nil {
		return wire.Answer{}, err
	}
	usage, err := a.Evidence.Usage(r.Context(), r.Caller.AccountID)
	if err != nil {
		return wire.Answer{}, err
	}
	out := evidenceOf(keep, hold, usage)
	if asked.Any() {
		would, err := evidence.Estimate(r.Context(), a.DB, r.Caller.AccountID, projectID, asked)
		if err != nil {
			return wire.Answer{}, err
		}
		out.Estimate = new(usageOf(would))
	}
	return wire.Reply(http.StatusOK, out)
}

func evidenceOf(keep retention.Keep, hold *retention.Hold, usage evidence.Usage) evidenceBody {
	out := evidenceBody{KeepEvidenceDays: keep.EvidenceDays, KeepRecordingsDays: keep.RecordingsDays, Usage: usageOf(usage)}
	if hold != nil {
		out.Hold = &holdBody{Reason: hold.Reason, Operator: hold.Operator, PlacedAt: wire.Timestamp(hold.At)}
	}
	return out
}

// updateEvidence is PATCH /v1/evidence: how long the account's evidence is kept.
func (a *Handlers) updateEvidence(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	change := input.Retention(r.Object(&p))
	return a.Writer.WriteUnless(p.Err(), r, func(ctx context.Context, cause command.Cause) (wire.Answer, error) {
		keep, at, err := a.Commands.SetAccountRetention(ctx, cause, change)
		if err != nil {
			return wire.Answer{}, err
		}
		_, hold, err := a.Commands.AccountRetention(ctx, r.Caller.AccountID)
		if err != nil {
			return wire.Answer{}, err
		}
		a.Writer.Visible(ctx, r, at)
		usage, err := a.Evidence.Usage(ctx, r.Caller.AccountID)
		return wire.ReplyUnless(err, http.StatusOK, evidenceOf(keep, hold, usage))
	})
}

// daysIn reads a number of days; nil: it is not in the query.
func daysIn(q wire.Query, name string) *int {
	if days := q.Integer(name, 0, retention.MinDays, retention.MaxDays); days > 0 {
		return &days
	}
	return nil
}
