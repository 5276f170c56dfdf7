package console

import (
	"context"

	"github.com/google/uuid"

	"humanqa"
	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/httpapi/ui"
	"humanqa/internal/invariantcheck"
)

// checksShown bounds the checks in the list.
const checksShown = 10

type checksView struct {
	Running *checkLine // nil: none
	Last    *checkLine // the newest complete check; nil: none
	Lines   []checkLine
	Board   []boardLine
	Found   []findingLine // of Last
	More    int           // findings of it that were not kept
}

type checkLine struct {
	invariantcheck.Check
	By string
}

type findingLine struct {
	audit.Finding
	Href string
}

// boardLine is an invariant with the number of findings of the last check.
type boardLine struct {
	humanqa.Invariant
	Found int
}

func (d Deps) checksPage(r *ui.Request) (ui.Answer, error) {
	ctx := r.Context()
	v := checksView{}
	list, err := d.Checks.List(ctx, checksShown)
	if err != nil {
		return ui.Answer{}, err
	}
	last, found, err := d.Checks.LastDone(ctx)
	if err != nil {
		return ui.Answer{}, err
	}
	ids := []string{last.PersonID}
	for _, c := range list {
		ids = append(ids, c.PersonID)
	}
	name, err := d.names(ctx, ids...)
	if err != nil {
		return ui.Answer{}, err
	}
	for _, c := range list {
		line := checkLine{c, name(c.PersonID)}
		v.Lines = append(v.Lines, line)
		if c.Running() {
			v.Running = &line
		}
	}
	broken := map[int]int{}
	if found {
		v.Last = &checkLine{last, name(last.PersonID)}
		for _, f := range last.Findings() {
			broken[f.Invariant]++
			v.Found = append(v.Found, findingLine{f, streamHref(f.Stream)})
		}
		v.More = last.Found - len(v.Found)
	}
	for _, one := range humanqa.Invariants {
		v.Board = append(v.Board, boardLine{one, broken[one.Number]})
	}
	return show("console-checks", "Invariants", v), nil
}

func (d Deps) startCheck(r *ui.Request) (ui.Answer, error) {
	err := d.act(r, command.OperatorAct{Act: oversight.Check, Subject: "the invariants"},
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
	err = d.act(r, command.OperatorAct{Act: oversight.CancelCheck, Subject: "the invariants"},
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
