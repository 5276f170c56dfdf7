package console

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/domain/retention"
	"humanqa/httpapi/evidence"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/overall"
)

// evidenceShown bounds the accounts that the page lists: those with the most bytes.
const evidenceShown = 50

type evidenceView struct {
	Total    evidence.Usage
	Usage    map[string]evidence.Usage // by account
	Shown    []string                  // accounts
	Names    map[string]string         // of accounts
	Holds    []holdLine
	Pager    ui.Pager
	Kinds    []string
	Kind, ID string // in the form
}

type holdLine struct {
	overall.Hold
	By, Href string
}

// evidencePage measures the evidence of all accounts, and lists the holds.
func (d Deps) evidencePage(r *ui.Request) (ui.Answer, error) {
	ctx := r.Context()
	v := evidenceView{Kinds: []string{retention.OfJob, retention.OfProject, retention.OfAccount}}
	v.Kind, v.ID = r.FormValue("kind"), r.FormValue("id")
	var err error
	if v.Usage, err = evidence.UsageByAccount(ctx, d.DB, ""); err != nil {
		return ui.Answer{}, err
	}
	ids := slices.SortedFunc(maps.Keys(v.Usage), func(a, b string) int {
		return cmp.Or(cmp.Compare(v.Usage[b].Kept().Bytes, v.Usage[a].Kept().Bytes), cmp.Compare(a, b))
	})
	for _, usage := range v.Usage {
		v.Total = v.Total.Plus(usage)
	}
	page := pageOf(r)
	holds, total, err := d.Reads.Overall.Holds(ctx, page)
	if err != nil {
		return ui.Answer{}, err
	}
	v.Pager = ui.NewPager(r, ui.PageOf(r), len(holds), total)
	v.Shown = ids[:min(len(ids), evidenceShown)]
	held := wire.List(holds, func(h overall.Hold) string { return h.AccountID })
	if v.Names, err = d.Reads.Overall.Names(ctx, overall.Accounts, slices.Concat(v.Shown, held)); err != nil {
		return ui.Answer{}, err
	}
	v.Holds, err = d.holdLines(ctx, holds)
	return ui.Show("console-evidence", "Evidence", v), err
}

// holdLines leaves out the reason of a client's hold: the client wrote it.
func (d Deps) holdLines(ctx context.Context, holds []overall.Hold) (lines []holdLine, err error) {
	placers := wire.List(holds, func(h overall.Hold) string { return h.PlacedBy })
	name, err := d.names(ctx, placers...)
	if err != nil {
		return nil, err
	}
	for _, h := range holds {
		line := holdLine{Hold: h, By: "the client"}
		if h.Operator {
			line.By = "an operator"
			if id, is := strings.CutPrefix(h.PlacedBy, "operator:"); is {
				line.By = name(id)
			}
		} else {
			line.Reason = ""
		}
		line.Href = subjectHref(command.EvidenceSubject{Kind: h.Kind, ID: h.ID}.Stream())
		lines = append(lines, line)
	}
	return lines, nil
}

func (d Deps) hold(r *ui.Request) (ui.Answer, error) {
	of := command.EvidenceSubject{Kind: r.PostFormValue("kind"), ID: strings.TrimSpace(r.PostFormValue("id"))}
	return d.onHold(r, of, oversight.PlaceHold, d.Commands.PlaceHold)
}

func (d Deps) releaseHold(r *ui.Request) (ui.Answer, error) {
	kind, id, _ := strings.Cut(r.PostFormValue("hold"), "-")
	return d.onHold(r, command.EvidenceSubject{Kind: kind, ID: id}, oversight.ReleaseHold, d.Commands.ReleaseHold)
}

func (d Deps) onHold(
	r *ui.Request, of command.EvidenceSubject, act oversight.Act,
	do func(context.Context, command.Cause, command.EvidenceSubject, string, bool) (domain.Position, error),
) (ui.Answer, error) {
	cause := r.Cause()
	accountID, err := d.holdAccount(r.Context(), of)
	if err == nil {
		account, missing := d.Reads.Access.Account(r.Context(), accountID)
		cause.AccountID, cause.Sandbox, err = accountID, account.Sandbox, missing
	}
	if err == nil {
		err = d.act(r, cause, command.OperatorAct{Act: act, Subject: of.Stream(), AccountID: accountID},
			func(ctx context.Context, cause command.Cause) (domain.Position, error) {
				return do(ctx, cause, of, strings.TrimSpace(r.PostFormValue("reason")), true)
			})
	}
	return ui.Go("/console/evidence#holds"), err
}

// holdAccount gives the id of the account whose evidence it is.
func (d Deps) holdAccount(ctx context.Context, of command.EvidenceSubject) (string, error) {
	known := slices.Contains([]string{retention.OfAccount, retention.OfProject, retention.OfJob}, of.Kind)
	switch id, err := uuid.Parse(of.ID); {
	case !known:
		return "", domain.Invalid(domain.Detail{Path: "kind", Message: "must be account, project or job"})
	case err != nil, id.String() != of.ID: // it names a stream
		return "", domain.Invalid(domain.Detail{Path: "id", Message: "must be the id of the " + of.Kind})
	case of.Kind == retention.OfProject:
		return d.Reads.Overall.ProjectAccount(ctx, of.ID)
	case of.Kind == retention.OfJob:
		job, err := d.Reads.Overall.Job(ctx, of.ID)
		return job.AccountID, err
	}
	return of.ID, nil
}
