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
	Sum     ledger.Sum
	Sound   bool
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
	if v.Entries, err = d.Reads.Ledger.Entries(r.Context(), r.Account.ID, ui.PageSize, (page-1)*ui.PageSize); err != nil {
		return ui.Answer{}, err
	}
	if v.Sum, err = d.Reads.Ledger.Sum(r.Context(), r.Account.ID); err != nil {
		return ui.Answer{}, err
	}
	if v.Days, v.Plot, err = d.balances(r, now); err != nil {
		return ui.Answer{}, err
	}
	v.Sound = v.Sum.Sum == v.Sum.Balance
	v.Pager = ui.NewPager(r, page, len(v.Entries), v.Sum.Entries)
	return ui.Show("credits", "Credits", v, domain.CreditsStream(r.Account.ID)), nil
}

// daysShown is the number of days for which the balance is drawn.
const daysShown = 30

// balances draws the account's balance at the end of each day (UTC). An account without
// entries has no drawing.
func (d Deps) balances(r *ui.Request, now time.Time) (days []ledger.DayEnd, plot *ui.Plot, err error) {
	first := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-daysShown)
	ends, err := d.Reads.Ledger.DayEnds(r.Context(), r.Account.ID, first)
	if err != nil || len(ends) == 0 {
		return nil, nil, err
	}
	var columns []ui.Column
	var balance domain.Credits
	for n := range daysShown {
		day := first.AddDate(0, 0, n)
		for len(ends) > 0 && !ends[0].Day.After(day) {
			balance, ends = ends[0].Balance, ends[1:]
		}
		days = append(days, ledger.DayEnd{Day: day, Balance: balance})
		columns = append(columns, ui.Column{
			Label: day.Format("2 Jan"), Says: day.Format("2 Jan 2006") + ": " + ui.Credits(balance),
			Parts: []ui.ColumnPart{{Kind: "plain", Of: float64(balance)}},
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
const statementMost = 500

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
	from := of.From
	if text := r.FormValue("from"); text != "" {
		if from, err = strconv.ParseUint(text, 10, 63); err != nil || from < of.From || from >= of.To {
			return ui.Answer{}, domain.NotFound("page of the statement")
		}
	}
	if v.Part, err = d.statementPart(r.Context(), r.Account.ID, v.Month, of, from); err != nil {
		return ui.Answer{}, err
	}
	v.Part.Alone = true
	if from > of.From {
		if len(v.Part.Lines) == 0 {
			return ui.Answer{}, domain.NotFound("page of the statement")
		}
		earlier, err := d.Reads.Ledger.Before(r.Context(), r.Account.ID, from, statementMost)
		if err != nil {
			return ui.Answer{}, err
		}
		v.Earlier = max(of.From, earlier[len(earlier)-1].Revision)
	}
	v.Paged = !v.Part.First || v.Part.Further > 0
	if of.From > 0 && len(v.Part.Lines) > 0 || len(v.Part.Lines) == 0 && of.Opening != 0 {
		v.Previous = v.Month.AddDate(0, -1, 0).Format(monthForm)
	}
	return ui.Show("statement", statementTitle(v.Month), v, domain.CreditsStream(r.Account.ID)), nil
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
	for from := of.From; ; {
		part, err := d.statementPart(ctx, accountID, month, of, from)
		if err != nil {
			return err
		}
		part.Sound = part.Sound && sound
		if err := each(part); err != nil || part.Further == 0 {
			return err
		}
		from, sound = part.Further, part.Sound
	}
}

// statementPart reads up to statementMost entries of a statement from a revision on.
func (d Deps) statementPart(
	ctx context.Context, accountID string, month time.Time, of ledger.Statement, from uint64,
) (part statementPart, err error) {
	lines, err := d.Reads.Ledger.Lines(ctx, accountID, of, from, statementMost+1)
	if err != nil {
		return part, err
	}
	part = statementPart{First: from == of.From, Month: month, Before: of.Opening, Closing: of.Closing, Sound: true}
	if len(lines) > statementMost {
		part.Further, lines = lines[statementMost].Revision, lines[:statementMost]
	}
	if !part.First && len(lines) > 0 {
		part.Before = lines[0].Balance - lines[0].Change
	}
	actors := wire.List(lines, ledger.Line.Author)
	name, err := words.AuthorsOf(ctx, d.Credentials, d.Reads, accountID, actors...)
	if err != nil {
		return part, err
	}
	part.Balance = part.Before
	for _, l := range lines {
		part.Balance += l.Change
		part.Lines = append(part.Lines, statementLine{l, name(l.Author()), part.Balance == l.Balance})
		part.Sound = part.Sound && part.Balance == l.Balance
	}
	part.Sound = part.Sound && (part.Further > 0 || part.Balance == of.Closing)
	return part, nil
}
