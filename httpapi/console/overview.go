package console

import (
	"strconv"
	"time"

	"humanqa/httpapi/ui"
	"humanqa/internal/invariantcheck"
	"humanqa/projections/overall"
	"humanqa/projections/oversight"
	"humanqa/webhooks"
)

const (
	nextShown = 8
	actsShown = 8
)

type overviewView struct {
	Counts   overall.Counts
	Queue    []waitingLine
	Ages     []ageLine
	AgesPlot *ui.Plot
	InQueue  int
	Overdue  int
	Soon     int // due within ten minutes
	Next     []overall.Deadline
	Problems []problemLine
	Acts     []actLine
}

// waitingLine is the queue of urgent jobs, or of the others.
type waitingLine struct {
	overall.Waiting
	OldestAt, NextAt time.Time
}

// problemLine is a problem that an operator should look at now.
type problemLine struct {
	Part, Text, Href string
	Warn             bool // it can wait
}

// ageLine is the number of tests that have used that part of their time.
type ageLine struct {
	Used string
	Jobs int
}

func agesOf(ages overall.Ages) (lines []ageLine, plot *ui.Plot) {
	var columns []ui.Column
	for i, used := range []struct{ short, long, kind string }{
		{"25 %", "up to 25 % of the time limit", "pass"}, {"50 %", "25 to 50 %", "pass"}, {"75 %", "50 to 75 %", "pass"},
		{"100 %", "75 to 100 %", "warn"}, {"over", "more than the time limit", "fail"},
	} {
		lines = append(lines, ageLine{used.long, ages[i]})
		columns = append(columns, ui.Column{
			Label: used.short, Number: strconv.Itoa(ages[i]), Says: used.long + ": " + ui.Count(ages[i], "test"),
			Parts: []ui.ColumnPart{{Kind: used.kind, Of: float64(ages[i])}},
		})
	}
	return lines, ui.NewPlot(columns, 0, "")
}

func (d Deps) overview(r *ui.Request) (ui.Answer, error) {
	ctx, now := r.Context(), d.Now()
	v := overviewView{}
	var err error
	if v.Counts, err = d.Reads.Overall.Counts(ctx); err != nil {
		return ui.Answer{}, err
	}
	queue, err := d.Reads.Overall.Queue(ctx, now)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, w := range queue {
		v.InQueue += w.Jobs
		v.Overdue += w.Overdue
		v.Soon += w.Soon
		v.Queue = append(v.Queue, waitingLine{w, *w.Oldest, *w.Next})
	}
	ages, err := d.Reads.Overall.Ages(ctx, now)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Ages, v.AgesPlot = agesOf(ages)
	if v.Next, err = d.Reads.Overall.Next(ctx, nextShown); err != nil {
		return ui.Answer{}, err
	}
	if v.Problems, err = d.wrongNow(r, v.Overdue, v.Soon); err != nil {
		return ui.Answer{}, err
	}
	v.Acts, err = d.latestActs(ctx, oversight.Filter{})
	return show("console-overview", "Console", v), err
}

// wrongNow lists the problems of this moment: those of the service's readiness and its notes,
// tests that are overdue or due soon, failing endpoints of clients, and an old check of the invariants.
func (d Deps) wrongNow(r *ui.Request, overdue, soon int) (lines []problemLine, err error) {
	places := map[string]string{"projections": "/console/projections", "webhooks": "/console/webhooks", "clock": "/console/system",
		"log": "/console/system", "audit": "/console/checks", "invariants": "/console/checks"}
	for _, p := range d.Problems(r.Context()) {
		finding := places[p.Part] == "/console/checks"
		lines = append(lines, problemLine{Part: p.Part, Text: ui.Sentence(p.Reason), Href: places[p.Part], Warn: p.Note && !finding})
	}
	if overdue > 0 {
		lines = append(lines, problemLine{Part: "queue", Text: ui.Count(overdue, "test") + " in the queue passed the time limit.",
			Href: "/console/jobs?status=pending"})
	}
	if soon > 0 {
		lines = append(lines, problemLine{Part: "queue", Text: ui.Count(soon, "test") + " in the queue must be done within ten minutes.",
			Href: "/console/jobs?status=pending", Warn: true})
	}
	fleet, _, err := d.Deliveries.Fleet(r.Context(), false, 1, 0)
	if err != nil {
		return nil, err
	}
	if text := fleetProblem(fleet); text != "" {
		lines = append(lines, problemLine{Part: "webhooks", Text: text, Href: "/console/webhooks", Warn: true})
	}
	last, checked, err := d.Checks.LastDone(r.Context())
	if err != nil {
		return nil, err
	}
	if text := checkProblem(last, checked, d.Now()); text != "" {
		lines = append(lines, problemLine{Part: "invariants", Text: text, Href: "/console/checks", Warn: true})
	}
	return lines, nil
}

func fleetProblem(f webhooks.Fleet) string {
	switch {
	case f.Disabled > 0 && f.Failing > 0:
		return ui.Count(f.Disabled, "webhook") + " of clients disabled, " + ui.Count(f.Failing, "other") + " failing."
	case f.Disabled > 0:
		return ui.Count(f.Disabled, "webhook") + " of clients disabled."
	case f.Failing > 0:
		return ui.Count(f.Failing, "webhook") + " of clients failing."
	}
	return ""
}

// staleCheck is the age of a check at which the next one is due.
const staleCheck = 7 * 24 * time.Hour

func checkProblem(last invariantcheck.Check, found bool, now time.Time) string {
	switch {
	case !found:
		return "The invariants have not been checked yet."
	case now.Sub(last.StartedAt) > staleCheck:
		return "The invariants were last checked " + ui.Ago(now, last.StartedAt) + "."
	}
	return ""
}
