package console

import (
	"context"
	"strings"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/overall"
	"humanqa/projections/pools"
)

type checkersView struct {
	Text  string
	Lines []overall.Checker
	Pager ui.Pager
}

func (d Deps) checkers(r *ui.Request) (ui.Answer, error) {
	v := checkersView{Text: textOf(r)}
	lines, total, err := d.Reads.Overall.Checkers(r.Context(), v.Text, "", pageOf(r))
	v.Lines, v.Pager = lines, ui.NewPager(r, ui.PageOf(r), len(lines), total)
	return ui.Show("console-checkers", "Checkers", v), err
}

type poolsView struct {
	Choices  choices
	Pools    []pools.Pool
	Accounts map[string]string // the names of the accounts that own pools, by id
}

func (d Deps) poolsPage(r *ui.Request) (ui.Answer, error) {
	v := poolsView{}
	var err error
	if v.Pools, err = d.Reads.Pools.Pools(r.Context()); err != nil {
		return ui.Answer{}, err
	}
	ids := wire.List(v.Pools, func(p pools.Pool) string { return p.AccountID })
	if v.Accounts, err = d.Reads.Overall.Names(r.Context(), overall.Accounts, ids); err != nil {
		return ui.Answer{}, err
	}
	v.Choices, err = d.choices(r.Context())
	return ui.Show("console-pools", "Pools", v), err
}

func (d Deps) createPool(r *ui.Request) (ui.Answer, error) {
	name, accountID := strings.TrimSpace(r.PostFormValue("name")), ""
	var err error
	if strings.TrimSpace(r.PostFormValue("account")) != "" {
		accountID, err = d.named(r, overall.Accounts)
	}
	if name == "" {
		err = domain.Invalid(domain.Detail{Path: "name", Message: "must not be blank"})
	}
	if err != nil {
		return ui.Answer{}, err
	}
	var id string
	cause := r.Cause()
	err = d.act(r, cause, command.OperatorAct{
		Act: oversight.CreatePool, Subject: domain.PoolStream(domain.DeriveID(cause.CommandID, "pool").String()), AccountID: accountID,
		Detail: name,
	}, func(ctx context.Context, cause command.Cause) (at domain.Position, err error) {
		id, at, err = d.Commands.CreatePool(ctx, cause, name, accountID)
		return at, err
	})
	return ui.Go("/console/pools/" + id), err
}

type poolView struct {
	Choices choices
	pools.Pool
	Account string // the name of the account that owns the pool
	Lines   []overall.Checker
	Pager   ui.Pager
}

func (d Deps) poolPage(r *ui.Request, p pools.Pool) (_ ui.Answer, err error) {
	ctx := r.Context()
	v := poolView{Pool: p}
	if v.Account, err = d.Reads.Overall.Name(ctx, overall.Accounts, v.AccountID); err != nil {
		return ui.Answer{}, err
	}
	if v.Choices, err = d.choices(ctx); err != nil {
		return ui.Answer{}, err
	}
	lines, total, err := d.Reads.Overall.Checkers(ctx, "", p.ID, pageOf(r))
	v.Lines, v.Pager = lines, ui.NewPager(r, ui.PageOf(r), len(lines), total)
	return ui.Show("console-pool", v.Name, v), err
}

// changePool takes a checker in, or out.
func (d Deps) changePool(r *ui.Request, p pools.Pool) (ui.Answer, error) {
	checkerID, err := d.named(r, overall.Checkers)
	if err != nil {
		return ui.Answer{}, err
	}
	act, change := oversight.AddChecker, d.Commands.AddToPool
	if r.FormValue("action") == "remove" {
		act, change = oversight.RemoveChecker, d.Commands.RemoveFromPool
	}
	err = d.act(r, r.Cause(), command.OperatorAct{Act: act, Subject: domain.PoolStream(p.ID), AccountID: p.AccountID,
		Detail: "checker " + checkerID},
		func(ctx context.Context, cause command.Cause) (domain.Position, error) {
			return change(ctx, cause, p.ID, checkerID)
		})
	return ui.Go("/console/pools/" + p.ID), err
}
