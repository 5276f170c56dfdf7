package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/tabular"
	"humanqa/projections/auditlog"
	"humanqa/projections/events"
)

// OwnLog is what the log holds of an account: *auditlog.Own.
type OwnLog interface {
	Events(ctx context.Context, accountID string, since *time.Time, until *events.Until, each func(row []any) error) error
	Proof(ctx context.Context, accountID string, id uuid.UUID) (auditlog.Proof, error)
}

// getProof is GET /v1/audit/proof: that an event of the account is in the log, for
// cmd/auditverify or whoever else hashes.
func (a *API) getProof(r *request) (answer, error) {
	if r.caller.projectID != "" {
		return answer{}, errOtherProject // an event may be of every project
	}
	var p problems
	text := r.query(&p).text("event")
	id, err := uuid.Parse(text)
	if err != nil && len(p.details) == 0 {
		p.add("event", "must be the id of an event")
	}
	if err := p.err(); err != nil {
		return answer{}, err
	}
	proof, err := a.ownLog.Proof(r.Context(), r.caller.accountID, id)
	if domain.IsKind(err, domain.KindNotFound) {
		return answer{}, retryAfter(err, proofRetry)
	}
	if err != nil {
		return answer{}, err
	}
	return reply(http.StatusOK, proof)
}

// proofRetry is when the next checkpoint is there, in seconds.
const proofRetry = 60

// exportEvents is GET /v1/exports/events: the account's own events, as the
// operator's export writes them.
func (a *API) exportEvents(r *request) (answer, error) {
	if r.caller.projectID != "" {
		return answer{}, errOtherProject
	}
	var p problems
	q := r.query(&p)
	format := tabular.Format(q.oneOf("format", tabular.Formats()))
	since := q.time("since")
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	var until *events.Until
	if at != nil {
		until = &at.Until
	}
	a.feedCatchesUp(r) // it knows whose streams there are
	return a.tableOf(r, cmp.Or(format, tabular.NDJSON), "events", auditlog.EventColumns, func(ctx context.Context, each func([]any) error) error {
		return a.ownLog.Events(ctx, r.caller.accountID, since, until, each)
	})
}

// auditKeyHeader names the key that a checkpoint is verified by.
const auditKeyHeader = "X-Audit-Key"

// getCheckpoint is GET /v1/audit/checkpoint: a signed note, byte for byte, for
// whoever wants to keep one.
func (a *API) getCheckpoint(r *request) (answer, error) {
	note, verifier, err := a.checkpoint(r.Context())
	if err != nil {
		return answer{}, err
	}
	if note == "" {
		return answer{}, domain.NotFound("checkpoint").WithHint("the first one is signed within a minute of the first event")
	}
	return answer{
		status: http.StatusOK,
		header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}, auditKeyHeader: {verifier}},
		body:   []byte(note),
	}, nil
}
