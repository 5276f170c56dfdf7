package dashboard

import (
	"context"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/dashboard/words"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/credits"
	"humanqa/projections/ledger"
)

type creditsView struct {
	Balance credits.Balance
	Entries []ledger.Entry
	Before  domain.Credits // the balance before the entries
	Sound   bool           // each balance is the one before and the change
	Days    []ledger.DayEnd
	Plot    *ui.Plot
	Pager   ui.Pager
	Prices  prices
	BuyURL  string
}

func (d Deps) credits(r *ui.Request) (ui.Answer, error) {
	now, err := d.Commands.AccountTime(r.Context(), r.Cause())
	if err != nil {
		return ui.Answer{}, err
	}
	page := ui.PageOf(r)
	v := creditsView{BuyURL: d.CreditsURL}
	if v.Balance, err = d.Reads.Credits.Balance(r.Context(), r.Account.ID, now); err != nil {
		return ui.Answer{}, err
	}
	entries, err := d.Reads.Ledger.Entries(r.Context(), r.Account.ID, ui.PageSize+1, (page-1)*ui.PageSize)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Entries, v.Sound = entries[:min(len(entries), ui.PageSize)], true
	for i, e := range v.Entries {
		v.Before = 0
		if i+1 < len(entries) {
			v.Before = entries[i+1].Balance
		}
		v.Sound = v.Sound && v.Before+e.Change == e.Balance
	}
	if v.Days, v.Plot, err = d.balances(r, now); err != nil {
		return ui.Answer{}, err
	}
	v.Pager = ui.NewOpenPager(r, page, len(v.Entries), len(entries) > len(v.Entries))
	return ui.Show("credits", "Credits", v, domain.CreditsStream(r.Account.ID)), nil
}

// daysShown is the number of days for which the balance is drawn.
const daysShown = 30

// balances draws the account's balance at the end of each day (UTC). An account without
// entries has no drawing.
func (d Deps) balances(r *ui.Request, now time.Time) (days []ledger.DayEnd, plot *ui.Plot, err error) {
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-daysShown)
	days, err = d.Reads.Ledger.DayEnds(r.Context(), r.Account.ID, first, daysShown)
	if err != nil || len(days) == 0 {
		return nil, nil, err
	}
	var columns []ui.Column
	for _, end := range days {
		columns = append(columns, ui.Column{
			Label: end.Day.Format("2 Jan"), Says: end.Day.Format("2 Jan 2006") + ": " + ui.Credits(end.Balance),
			Parts: []ui.ColumnPart{{Kind: "plain", Of: float64(end.Balance)}},
		})
	}
	return days, ui.NewPlot(columns, 0, ""), nil
}

// setLow sets the limit below which credits are low (decisions, "Account events").
func (d Deps) setLow(r *ui.Request) (ui.Answer, error) {
	below, err := strconv.ParseInt(strings.TrimSpace(r.PostFormValue("below")), 10, 64)
	if err != nil {
		below = -1 // not a number: refused as an invalid limit
	}
	at, err := d.Commands.SetLowCredits(r.Context(), r.Cause(), domain.Credits(below))
	return r.Done(at, err, "/dashboard/credits")
}

// statementMost bounds the entries on a page of a month, and the entries of a whole month
// that are in memory at a time.
const statementMost = 200

// statementView is a month of the ledger, to be printed.
type statementView struct {
	Account         string
	AccountID       string
	Month           time.Time // its first instant, UTC
	Printed         time.Time
	Previous, Next  string // months; empty: there is none
	Opening, Change domain.Credits
	Closing         domain.Credits
	Part            statementPart
	Whole           bool   // all entries of the month are sent as they are read
	Earlier         uint64 // the first revision of the page before
	Paged           bool   // the month has more entries than a page
}

// statementPart is a run of a month's entries.
type statementPart struct {
	Lines   []statementLine
	First   bool           // it begins the month
	Alone   bool           // it is a page of its own
	Month   time.Time      // the month's first instant, UTC
	Before  domain.Credits // the balance before the first of the lines
	Balance domain.Credits // the balance after the last of the lines
	Further uint64         // the first revision of the next part; 0: this is the last
	Closing domain.Credits // the balance at the end of the month
	Sound   bool           // at every line, the balance before and the changes add up to the balance
}

type statementLine struct {
	ledger.Line
	By    string
	Sound bool
}

// statement shows a month, in UTC (decisions, "Ledger").
func (d Deps) statement(r *ui.Request) (ui.Answer, error) {
	now, err := d.Commands.AccountTime(r.Context(), r.Cause())
	if err != nil {
		return ui.Answer{}, err
	}
	this := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	v := statementView{Account: r.Account.Name, AccountID: r.Account.ID, Printed: now}
	if v.Month, err = statementMonth(r.FormValue("month"), this); err != nil {
		return ui.Answer{}, err
	}
	behind := v.Month.AddDate(0, 1, 0)
	if v.Month.Before(this) {
		v.Next = behind.Format(monthForm)
	}
	of, err := d.Reads.Ledger.Statement(r.Context(), r.Account.ID, v.Month, behind, ledger.Whole)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Opening, v.Closing, v.Change = of.Opening, of.Closing, of.Closing-of.Opening
	if v.Whole = r.FormValue("whole") != ""; v.Whole {
		if of.From > 0 {
			v.Previous = v.Month.AddDate(0, -1, 0).Format(monthForm)
		}
		answer := ui.Show("statement", statementTitle(v.Month), v)
		answer.Rows = func(ctx context.Context, each func(any) error) error {
			return d.eachStatementPart(ctx, r.Account.ID, v.Month, of, each)
		}
		return answer, nil
	}
	if err := d.statementPage(r, &v, of); err != nil {
		return ui.Answer{}, err
	}
	if of.From > 0 && len(v.Part.Lines) > 0 || len(v.Part.Lines) == 0 && of.Opening != 0 {
		v.Previous = v.Month.AddDate(0, -1, 0).Format(monthForm)
	}
	return ui.Show("statement", statementTitle(v.Month), v, domain.CreditsStream(r.Account.ID)), nil
}

// statementPage reads the page of a month that begins at the revision in the address.
func (d Deps) statementPage(r *ui.Request, v *statementView, of ledger.Statement) (err error) {
	from, before := of.From, of.Opening
	if text := r.FormValue("from"); text != "" {
		if from, err = strconv.ParseUint(text, 10, 63); err != nil || from < of.From || from >= of.To {
			return domain.NotFound("page of the statement")
		}
	}
	if from > of.From {
		earlier, err := d.Reads.Ledger.Before(r.Context(), r.Account.ID, from, statementMost)
		if err != nil {
			return err
		}
		before, v.Earlier = earlier[0].Balance, max(of.From, earlier[len(earlier)-1].Revision)
	}
	v.Part, err = d.statementPart(r.Context(), r.Account.ID, v.Month, of, from, before)
	if err == nil && from > of.From && len(v.Part.Lines) == 0 {
		err = domain.NotFound("page of the statement")
	}
	v.Part.Alone, v.Paged = true, !v.Part.First || v.Part.Further > 0
	return err
}

// monthForm is a month in the address of a statement.
const monthForm = "2006-01"

// statementMonth reads the month that the address names; without one it is this.
func statementMonth(text string, this time.Time) (time.Time, error) {
	if text == "" {
		return this, nil
	}
	month, err := time.Parse(monthForm, text)
	if err != nil || month.After(this) || month.Year() < 2000 {
		return month, domain.NotFound("statement").WithHint("a month is written as in 2026-11, and has begun")
	}
	return month, nil
}

func statementTitle(month time.Time) string { return "Credits, " + month.Format("January 2006") }

// eachStatementPart reads a whole month, part by part.
func (d Deps) eachStatementPart(ctx context.Context, accountID string, month time.Time, of ledger.Statement, each func(any) error) error {
	sound := true
	for from, before := of.From, of.Opening; ; {
		part, err := d.statementPart(ctx, accountID, month, of, from, before)
		if err != nil {
			return err
		}
		part.Sound = part.Sound && sound
		if err := each(part); err != nil || part.Further == 0 {
			return err
		}
		from, before, sound = part.Further, part.Balance, part.Sound
	}
}

// statementPart reads up to statementMost entries of a statement from a revision on, with
// the balance before it.
func (d Deps) statementPart(
	ctx context.Context, accountID string, month time.Time, of ledger.Statement, from uint64, before domain.Credits,
) (part statementPart, err error) {
	lines, err := d.Reads.Ledger.Lines(ctx, accountID, of, from, statementMost+1)
	if err != nil {
		return part, err
	}
	part = statementPart{First: from == of.From, Month: month, Before: before, Balance: before, Closing: of.Closing, Sound: true}
	if len(lines) > statementMost {
		part.Further, lines = lines[statementMost].Revision, lines[:statementMost]
	}
	actors := wire.List(lines, ledger.Line.Author)
	name, err := words.AuthorsOf(ctx, d.Credentials, d.Reads, accountID, actors...)
	if err != nil {
		return part, err
	}
	for _, l := range lines {
		part.Balance += l.Change
		part.Lines = append(part.Lines, statementLine{l, name(l.Author()), part.Balance == l.Balance})
		part.Sound = part.Sound && part.Balance == l.Balance
	}
	part.Sound = part.Sound && (part.Further > 0 || part.Balance == of.Closing)
	return part, nil
}
