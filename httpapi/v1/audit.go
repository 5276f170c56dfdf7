package v1

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/projections/auditlog"
	"humanqa/projections/events"
)

// OwnLog reads an account's own part of the log: *auditlog.Own.
type OwnLog interface {
	Events(ctx context.Context, accountID string, span auditlog.Span, each func(row []any) error) error
	Proof(ctx context.Context, accountID string, id uuid.UUID) (auditlog.Proof, error)
}

// getProof is GET /v1/audit/proof: the proof that an event of the account is in the log,
// for cmd/auditverify or any other verifier.
func (a *Handlers) getProof(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	text := r.Query(&p).Text("event")
	id, err := uuid.Parse(text)
	if err != nil && p.Count() == 0 {
		p.Add("event", "must be the id of an event")
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	proof, err := a.OwnLog.Proof(r.Context(), r.Caller.AccountID, id)
	if domain.IsKind(err, domain.KindNotFound) {
		return wire.Answer{}, wire.RetryAfter(err, proofRetry)
	}
	return wire.ReplyUnless(err, http.StatusOK, proof)
}

// proofRetry is the time until the next checkpoint is there, in seconds.
const proofRetry = 60

// exportEvents is GET /v1/exports/events: the account's own events up to the position that
// the answer names. An export behind that position has those that follow.
func (a *Handlers) exportEvents(r *wire.Request) (wire.Answer, error) {
	in, err := a.readExport(r, true)
	if err == nil {
		err = a.Fresh.RequireFeed(r.Context()) // the feed knows the account of each stream
	}
	if err != nil {
		return wire.Answer{}, err
	}
	span := auditlog.Span{After: in.After, Since: in.Since, Until: in.Until, Then: in.at.place()}
	if in.at == nil && r.Shown != (domain.Position{}) {
		span.Then = &events.Until{Position: r.Shown}
	}
	return a.TableOf(r, in.format, "events", auditlog.EventColumns, func(ctx context.Context, each func([]any) error) error {
		return a.OwnLog.Events(ctx, in.AccountID, span, each)
	})
}

// auditKeyHeader names the key that a checkpoint is verified by.
const auditKeyHeader = "X-Audit-Key"

// getCheckpoint is GET /v1/audit/checkpoint: a signed note, byte for byte, for clients
// that keep one.
func (a *Handlers) getCheckpoint(r *wire.Request) (wire.Answer, error) {
	note, verifier, err := a.Checkpoint(r.Context())
	if err != nil {
		return wire.Answer{}, err
	}
	if note == "" {
		return wire.Answer{}, domain.NotFound("checkpoint").WithHint("the first one is signed within a minute of the first event")
	}
	return wire.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}, auditKeyHeader: {verifier}},
		Body:   []byte(note),
	}, nil
}
