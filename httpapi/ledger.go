package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/internal/tabular"
	"humanqa/projections/ledger"
)

// ledgerBody is a page of GET /v1/credits/ledger, the newest entry first.
type ledgerBody struct {
	Entries []ledgerEntry `json:"entries"`
	Next    *string       `json:"next"` // ?after= of the next page; null on the last
	AsOf    *string       `json:"asOf,omitempty"`
}

// ledgerEntry is one event of the ledger. Amount is what it did to the balance.
type ledgerEntry struct {
	ID           string         `json:"id"`
	At           timestamp      `json:"at"`
	Kind         string         `json:"kind"` // granted, debited, refunded, expired
	Amount       domain.Credits `json:"amount"`
	BalanceAfter domain.Credits `json:"balanceAfter"`
	Expired      domain.Credits `json:"expired"` // what of a refund came back too late
	JobID        *string        `json:"jobId"`
	JobTitle     *string        `json:"jobTitle"`
	Lots         []ledger.Part  `json:"lots"`
	By           string         `json:"by"`
	RequestID    *string        `json:"requestId"`
	Reason       *string        `json:"reason"`
}

func ledgerEntryOf(l ledger.Line) ledgerEntry {
	return ledgerEntry{
		ID: strconv.FormatUint(l.Revision, 10), At: timestamp(l.At), Kind: l.Kind, Amount: l.Change, BalanceAfter: l.Balance, Expired: l.Expired,
		JobID: orNull(l.JobID), JobTitle: orNull(l.JobTitle), Lots: l.Lots, By: byWhom(l.Actor),
		RequestID: orNull(l.RequestID), Reason: orNull(l.Reason),
	}
}

// byWhom is the actor as an account may know it: its own keys and people, or the
// service. Never a checker.
func byWhom(actor string) string {
	switch kind, _, _ := strings.Cut(actor, ":"); kind {
	case "key", "person":
		return actor
	case "operator": // which one is not the account's to know
		return kind
	}
	return "service"
}

// creditsLedger is GET /v1/credits/ledger.
func (a *API) creditsLedger(r *request) (answer, error) {
	if r.caller.projectID != "" {
		return answer{}, errOtherProject // it tells of every project's jobs
	}
	var p problems
	q := r.query(&p)
	limit := q.integer("limit", 20, 1, 100)
	before := uint64(ledger.Whole)
	if after := q.text("after"); after != "" {
		var err error
		if before, err = strconv.ParseUint(after, 10, 63); err != nil {
			p.add("after", "must be the next of an earlier answer")
		}
	}
	at, err := a.asOf(r, &p)
	if err := cmp.Or(p.err(), err); err != nil {
		return answer{}, err
	}
	whole, err := a.ledgerThen(r, at)
	if err != nil {
		return answer{}, err
	}
	lines, err := a.reads.Ledger.Before(r.Context(), r.caller.accountID, min(before, whole), limit+1)
	if err == nil && at != nil {
		err = a.past.Titles(r.Context(), lines, at.Until)
	}
	if err != nil {
		return answer{}, err
	}
	out := ledgerBody{Entries: []ledgerEntry{}, AsOf: at.then()}
	for _, l := range lines[:min(len(lines), limit)] {
		out.Entries = append(out.Entries, ledgerEntryOf(l))
	}
	if len(lines) > limit {
		out.Next = &out.Entries[limit-1].ID
	}
	return reply(http.StatusOK, out)
}

// ledgerThen is the revision behind the ledger's end, as ?asOf= asks for it.
func (a *API) ledgerThen(r *request, at *asked) (uint64, error) {
	if at == nil {
		return ledger.Whole, nil
	}
	return a.past.Ledger(r.Context(), r.caller.accountID, at.Until)
}

// statementPage is how many lines of a statement are in memory at a time.
const statementPage = 500

// creditsStatement is GET /v1/credits/statement: a month, in UTC, as CSV. The
// opening balance and the lines' amounts are the closing balance, line by line.
func (a *API) creditsStatement(r *request) (answer, error) {
	if r.caller.projectID != "" {
		return answer{}, errOtherProject
	}
	var p problems
	text := r.query(&p).text("month")
	at, err := a.asOf(r, &p)
	if err != nil {
		return answer{}, err
	}
	whole, err := a.ledgerThen(r, at)
	if err != nil {
		return answer{}, err
	}
	now, err := a.timeThen(r, whole, at)
	if err != nil {
		return answer{}, err
	}
	month := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	if text != "" {
		if month, err = time.Parse("2006-01", text); err != nil {
			p.add("month", "must be a month, such as 2026-11")
		}
	}
	if err := p.err(); err != nil {
		return answer{}, err
	}
	s, err := a.reads.Ledger.Statement(r.Context(), r.caller.accountID, month, month.AddDate(0, 1, 0), whole)
	if err != nil {
		return answer{}, err
	}
	return a.tableOf(r, tabular.CSV, "credits-"+month.Format("2006-01"), statementColumns, func(ctx context.Context, each func([]any) error) error {
		return a.statementRows(ctx, r.caller.accountID, s, month, at, each)
	})
}

// timeThen is the account's time, as ?asOf= asks for it.
func (a *API) timeThen(r *request, whole uint64, at *asked) (time.Time, error) {
	if at == nil {
		return a.accountTime(r.Context(), r)
	}
	return a.past.Now(r.Context(), r.caller.accountID, whole, at.Until)
}

var statementColumns = []tabular.Column{
	{Name: "time", Kind: tabular.Moment}, {Name: "kind"}, {Name: "amount", Kind: tabular.Number}, {Name: "balance", Kind: tabular.Number},
	{Name: "jobId"}, {Name: "jobTitle"}, {Name: "lots"}, {Name: "by"}, {Name: "requestId"}, {Name: "reason"},
}

func (a *API) statementRows(ctx context.Context, accountID string, s ledger.Statement, month time.Time, at *asked, each func([]any) error) error {
	bound := func(at time.Time, kind string, balance domain.Credits) error {
		return each([]any{at, kind, nil, int64(balance), nil, nil, nil, nil, nil, nil})
	}
	if err := bound(month, "opening", s.Opening); err != nil {
		return err
	}
	for from := s.From; ; {
		lines, err := a.reads.Ledger.Lines(ctx, accountID, s, from, statementPage)
		if err == nil && at != nil {
			err = a.past.Titles(ctx, lines, at.Until)
		}
		if err != nil {
			return err
		}
		for _, l := range lines {
			lots := make([]string, len(l.Lots))
			for i, lot := range l.Lots {
				lots[i] = lot.LotID
			}
			err := each([]any{
				l.At, l.Kind, int64(l.Change), int64(l.Balance), l.JobID, l.JobTitle, strings.Join(lots, " "), byWhom(l.Actor), l.RequestID, l.Reason,
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
