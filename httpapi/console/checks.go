package console

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"humanqa"
	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/internal/invariantcheck"
)

// checksShown bounds the checks in the list.
const checksShown = 10

type checksView struct {
	Running    *invariantcheck.Check // nil: none
	Last       *invariantcheck.Check // the newest complete check; nil: none
	Lines      []invariantcheck.Check
	Called     func(id string) string // the name of the operator who started a check
	Invariants []humanqa.Invariant
	Broken     map[int]int     // the findings of Last for each invariant
	Found      []audit.Finding // of Last
	More       int             // findings of it that were not kept
}

// Href is the page of a finding's stream; empty: there is none.
func (checksView) Href(stream string) string { return streamHref(stream) }

func (d Deps) checksPage(r *ui.Request) (ui.Answer, error) {
	ctx := r.Context()
	v := checksView{Invariants: humanqa.Invariants, Broken: map[int]int{}}
	var err error
	if v.Lines, err = d.Checks.List(ctx, checksShown); err != nil {
		return ui.Answer{}, err
	}
	last, found, err := d.Checks.LastDone(ctx)
	if err != nil {
		return ui.Answer{}, err
	}
	ids := append(wire.List(v.Lines, func(c invariantcheck.Check) string { return c.PersonID }), last.PersonID)
	if v.Called, err = d.names(ctx, ids...); err != nil {
		return ui.Answer{}, err
	}
	if at := slices.IndexFunc(v.Lines, invariantcheck.Check.Running); at >= 0 {
		v.Running = &v.Lines[at]
	}
	if found {
		v.Last, v.Found = &last, last.Findings()
		for _, f := range v.Found {
			v.Broken[f.Invariant]++
		}
		v.More = last.Found - len(v.Found)
	}
	return show("console-checks", "Invariants", v), nil
}

func (d Deps) startCheck(r *ui.Request) (ui.Answer, error) {
	err := d.act(r, r.Cause(), command.OperatorAct{Act: oversight.Check, Subject: "the invariants"},
		func(ctx context.Context, cause command.Cause) (domain.Position, error) {
			return domain.Position{}, d.Checks.Start(ctx, domain.DeriveID(cause.CommandID, "check"), r.Person.ID)
		})
	return ui.Go("/console/checks"), err
}

func (d Deps) cancelCheck(r *ui.Request) (ui.Answer, error) {
	id, err := uuid.Parse(r.PathValue("id"))
	if err != nil {
		return ui.Answer{}, domain.NotFound("check")
	}
	err = d.act(r, r.Cause(), command.OperatorAct{Act: oversight.CancelCheck, Subject: "the invariants"},
		func(ctx context.Context, _ command.Cause) (domain.Position, error) {
			return domain.Position{}, d.Checks.Cancel(ctx, id)
		})
	return ui.Go("/console/checks"), err
}

type systemView struct {
	Facts    []Fact
	Settings []Setting
	Problems []problemLine
}

// system shows the versions and the settings of this process, and the service's problems.
func (d Deps) system(r *ui.Request) (ui.Answer, error) {
	v := systemView{Facts: d.Facts, Settings: d.Settings}
	for _, p := range d.Problems(r.Context()) {
		v.Problems = append(v.Problems, problemLine{Part: p.Part, Text: ui.Sentence(p.Reason)})
	}
	return show("console-system", "Settings", v), nil
}
