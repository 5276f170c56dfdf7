package console

import (
	"context"
	"time"

	"humanqa/httpapi/ui"
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
	Queue    []overall.Waiting // of urgent jobs, and of the others
	Ages     []ageLine
	AgesPlot *ui.Plot
	InQueue  int
	Overdue  int
	Soon     int // due within ten minutes
	Next     []overall.Deadline
	Problems []problemLine // of the service's readiness and its notes
	Webhooks webhooks.Fleet
	// Unchecked says that the invariants were never checked; CheckedAt is the last check if the
	// next one is due.
	Unchecked bool
	CheckedAt *time.Time
	Acts      []actLine
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
			Label: used.short, Number: ui.Group(int64(ages[i])), Says: used.long + ": " + ui.Count(ages[i], "test"),
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
	if v.Queue, err = d.Reads.Overall.Queue(ctx, now); err != nil {
		return ui.Answer{}, err
	}
	for _, w := range v.Queue {
		v.InQueue += w.Jobs
		v.Overdue += w.Overdue
		v.Soon += w.Soon
	}
	ages, err := d.Reads.Overall.Ages(ctx, now)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Ages, v.AgesPlot = agesOf(ages)
	if v.Next, err = d.Reads.Overall.Next(ctx, nextShown); err != nil {
		return ui.Answer{}, err
	}
	v.Problems = d.wrongNow(ctx)
	if v.Webhooks, _, err = d.Deliveries.Fleet(ctx, false, 1, 0); err != nil {
		return ui.Answer{}, err
	}
	last, checked, err := d.Checks.LastDone(ctx)
	if err != nil {
		return ui.Answer{}, err
	}
	if v.Unchecked = !checked; checked && now.Sub(last.StartedAt) > staleCheck {
		v.CheckedAt = &last.StartedAt
	}
	v.Acts, err = d.latestActs(ctx, oversight.Filter{})
	return show("console-overview", "Console", v), err
}

// staleCheck is the age of a check at which the next one is due.
const staleCheck = 7 * 24 * time.Hour

// wrongNow lists the problems of this moment that the service's readiness and its notes tell.
func (d Deps) wrongNow(ctx context.Context) (lines []problemLine) {
	places := map[string]string{"projections": "/console/projections", "webhooks": "/console/webhooks", "clock": "/console/system",
		"log": "/console/system", "audit": "/console/checks", "invariants": "/console/checks"}
	for _, p := range d.Problems(ctx) {
		finding := places[p.Part] == "/console/checks"
		lines = append(lines, problemLine{Part: p.Part, Text: ui.Sentence(p.Reason), Href: places[p.Part], Warn: p.Note && !finding})
	}
	return lines
}
