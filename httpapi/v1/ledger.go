package v1

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/tabular"
	"humanqa/projections/ledger"
)

// ledgerBody is a page of GET /v1/credits/ledger, the newest entry first.
type ledgerBody struct {
	Entries []ledgerEntry `json:"entries"`
	Next    *string       `json:"next"` // ?after= of the next page; null on the last
	AsOf    *string       `json:"asOf,omitempty"`
}

// ledgerEntry is one event of the ledger. Amount is its change of the balance.
type ledgerEntry struct {
	ID           string         `json:"id"`
	At           wire.Timestamp `json:"at"`
	Kind         string         `json:"kind"` // granted, debited, refunded, expired
	Amount       domain.Credits `json:"amount"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
	Expired      domain.Credits `json:"expired"` // the credits of a refund that came back too late
	JobID        *string        `json:"jobId"`
	JobTitle     *string        `json:"jobTitle"`
	Lots         []ledger.Part  `json:"lots"`
	By           string         `json:"by"`
	RequestID    *string        `json:"requestId"`
	Reason       *string        `json:"reason"`
}

func ledgerEntryOf(l ledger.Line) ledgerEntry {
	return ledgerEntry{
		ID: strconv.FormatUint(l.Revision, 10), At: wire.Timestamp(l.At), Kind: l.Kind, Amount: l.Change, BalanceAfter: l.Balance,
		Expired: l.Expired,
		JobID:   wire.OrNull(l.JobID), JobTitle: wire.OrNull(l.JobTitle), Lots: l.Lots, By: l.Author(),
		RequestID: wire.OrNull(l.RequestID), Reason: wire.OrNull(l.Reason),
	}
}

// creditsLedger is GET /v1/credits/ledger.
func (a *Handlers) creditsLedger(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	limit := q.Integer("limit", 20, 1, 100)
	before := uint64(ledger.Whole)
	if after := q.Text("after"); after != "" {
		var err error
		if before, err = strconv.ParseUint(after, 10, 63); err != nil {
			p.Add("after", "must be the next of an earlier answer")
		}
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.Err(), err); err != nil {
		return wire.Answer{}, err
	}
	whole, err := a.ledgerThen(r, at)
	if err != nil {
		return wire.Answer{}, err
	}
	lines, err := a.Reads.Ledger.Before(r.Context(), r.Caller.AccountID, min(before, whole), limit+1)
	if err == nil && at != nil {
		err = a.past.Titles(r.Context(), lines, at.Until)
	}
	out := ledgerBody{Entries: wire.List(lines[:min(len(lines), limit)], ledgerEntryOf), AsOf: at.then()}
	if len(lines) > limit {
		out.Next = &out.Entries[limit-1].ID
	}
	return wire.ReplyUnless(err, http.StatusOK, out)
}

// ledgerThen is the revision behind the ledger's end at the moment of ?asOf=.
func (a *Handlers) ledgerThen(r *wire.Request, at *asked) (uint64, error) {
	if at == nil {
		return ledger.Whole, nil
	}
	return a.past.Ledger(r.Context(), r.Caller.AccountID, at.Until)
}

// statementPage is how many lines of a statement are in memory at a time.
const statementPage = 500

// creditsStatement is GET /v1/credits/statement: a month, in UTC, in the format that is
// asked for, else as CSV. Each line adds its amount to the balance, from the opening to
// the closing one.
func (a *Handlers) creditsStatement(r *wire.Request) (wire.Answer, error) {
	var p wire.Problems
	q := r.Query(&p)
	text, format := q.Text("month"), cmp.Or(tabular.Format(q.OneOf("format", tabular.Formats())), tabular.CSV)
	at, err := a.asOf(r, &p)
	if err != nil {
		return wire.Answer{}, err
	}
	whole, err := a.ledgerThen(r, at)
	if err != nil {
		return wire.Answer{}, err
	}
	now, err := a.timeThen(r, whole, at)
	if err != nil {
		return wire.Answer{}, err
	}
	month := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	if text != "" {
		if month, err = time.Parse("2006-01", text); err != nil {
			p.Add("month", "must be a month, such as 2026-11")
		}
	}
	if err := p.Err(); err != nil {
		return wire.Answer{}, err
	}
	s, err := a.Reads.Ledger.Statement(r.Context(), r.Caller.AccountID, month, month.AddDate(0, 1, 0), whole)
	if err != nil {
		return wire.Answer{}, err
	}
	return a.TableOf(r, format, "credits-"+month.Format("2006-01"), statementColumns,
		func(ctx context.Context, each func([]any) error) error {
			return a.statementRows(ctx, r.Caller.AccountID, s, month, at, each)
		})
}

// timeThen is the account's time at the moment of ?asOf=.
func (a *Handlers) timeThen(r *wire.Request, whole uint64, at *asked) (time.Time, error) {
	if at == nil {
		return a.accountTime(r.Context(), r)
	}
	return a.past.Now(r.Context(), r.Caller.AccountID, whole, at.Until)
}

var statementColumns = []tabular.Column{
	{Name: "time", Kind: tabular.Moment}, {Name: "kind"}, {Name: "amount", Kind: tabular.Number}, {Name: "balance", Kind: tabular.Number},
	{Name: "jobId"}, {Name: "jobTitle"}, {Name: "lots"}, {Name: "by"}, {Name: "requestId"}, {Name: "reason"},
}

func (a *Handlers) statementRows(
	ctx context.Context, accountID string, s ledger.Statement, month time.Time, at *asked, each func([]any) error,
) error {
	bound := func(at time.Time, kind string, balance domain.Credits) error {
		return each([]any{at, kind, nil, int64(balance), nil, nil, nil, nil, nil, nil})
	}
	if err := bound(month, "opening", s.Opening); err != nil {
		return err
	}
	for from := s.From; ; {
		lines, err := a.Reads.Ledger.Lines(ctx, accountID, s, from, statementPage)
		if err == nil && at != nil {
			err = a.past.Titles(ctx, lines, at.Until)
		}
		if err != nil {
			return err
		}
		for _, l := range lines {
			lots := wire.List(l.Lots, func(lot ledger.Part) string { return lot.LotID })
			err := each([]any{
				l.At, l.Kind, int64(l.Change), int64(l.Balance), l.JobID, l.JobTitle, strings.Join(lots, " "), l.Author(), l.RequestID,
				l.Reason,
			})
			if err != nil {
				return err
			}
			from = l.Revision + 1
		}
		if len(lines) < statementPage {
			return bound(month.AddDate(0, 1, 0), "closing", s.Closing)
		}
	}
}
