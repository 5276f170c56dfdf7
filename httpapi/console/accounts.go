package console

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
	"humanqa/httpapi/ui"
	"humanqa/httpapi/wire"
	"humanqa/projections/access"
	"humanqa/projections/credits"
	"humanqa/projections/overall"
	acts "humanqa/projections/oversight"
	"humanqa/projections/people"
	"humanqa/projections/pools"
	"humanqa/projections/projects"
)

type accountsView struct {
	Text  string
	Lines []overall.Account
	Pager ui.Pager
}

func (d Deps) accounts(r *ui.Request) (ui.Answer, error) {
	v := accountsView{Text: textOf(r)}
	lines, total, err := d.Reads.Overall.Accounts(r.Context(), v.Text, pageOf(r), d.Now())
	v.Lines, v.Pager = lines, ui.NewPager(r, ui.PageOf(r), len(lines), total)
	return ui.Show("console-accounts", "Accounts", v), err
}

// textOf is the text for which a list is searched, at most 200 characters.
func textOf(r *ui.Request) string {
	text := strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(r.FormValue("q"), "\x00", ""), ""))
	return string([]rune(text)[:min(200, len([]rune(text)))])
}

// accountShown bounds the rows of each list on an account's page.
const accountShown = 20

type accountView struct {
	access.Account
	Balance  credits.Balance
	Projects []projects.Project // the newest
	// ProjectCount is the number of all projects.
	ProjectCount int
	Keys         []access.IssuedKey
	KeyCount     int
	Members      []people.Person
	Called       func(id string) string // the name of a member
	Jobs         []overall.Job
	Pool         pools.Pool
	Pooled       bool
	Pools        []pools.Pool // the pools to which the account may be limited
	Acts         []actLine
}

func (d Deps) accountPage(r *ui.Request, of access.Account) (ui.Answer, error) {
	ctx, id := r.Context(), of.ID
	v := accountView{Account: of}
	now, err := d.Commands.AccountTime(ctx, command.Cause{AccountID: id, Sandbox: v.Sandbox})
	if err != nil {
		return ui.Answer{}, err
	}
	if v.Balance, err = d.Reads.Credits.Balance(ctx, id, now); err != nil {
		return ui.Answer{}, err
	}
	if v.Projects, v.ProjectCount, err = d.Reads.Projects.List(ctx, id, projects.Filter{Limit: accountShown}); err != nil {
		return ui.Answer{}, err
	}
	if v.Keys, v.KeyCount, err = d.Reads.Access.Keys(ctx, id, access.Page{Limit: accountShown}); err != nil {
		return ui.Answer{}, err
	}
	if v.Members, err = d.Reads.People.Members(ctx, id); err != nil {
		return ui.Answer{}, err
	}
	ids := wire.List(v.Members, func(p people.Person) string { return p.ID })
	if v.Called, err = d.names(ctx, ids...); err != nil {
		return ui.Answer{}, err
	}
	if v.Jobs, err = d.Reads.Overall.Jobs(ctx, overall.JobFilter{AccountID: id}, overall.Page{Limit: 8}); err != nil {
		return ui.Answer{}, err
	}
	if v.Pool, v.Pooled, err = d.Reads.Pools.OfAccount(ctx, id); err != nil {
		return ui.Answer{}, err
	}
	if v.Pools, err = d.Reads.Pools.Pools(ctx); err != nil {
		return ui.Answer{}, err
	}
	v.Pools = slices.DeleteFunc(v.Pools, func(p pools.Pool) bool { return p.AccountID != "" && p.AccountID != id })
	v.Acts, err = d.latestActs(ctx, acts.Filter{AccountID: id})
	return ui.Show("console-account", v.Name, v), err
}

// onAccount carries out a form on an account's page.
func (d Deps) onAccount(
	r *ui.Request, id string, act oversight.Act, detail string,
	do func(ctx context.Context, cause command.Cause, id string) (domain.Position, error),
) (ui.Answer, error) {
	subject := domain.AccountStream(id)
	if act == oversight.GrantCredits {
		subject = domain.CreditsStream(id)
	}
	err := d.act(r, r.Cause(), command.OperatorAct{Act: act, Subject: subject, AccountID: id, Detail: detail},
		func(ctx context.Context, cause command.Cause) (domain.Position, error) { return do(ctx, cause, id) })
	return ui.Go("/console/accounts/" + id), err
}

// maxGrant bounds the credits of one grant, and so the cost of a typing error.
const maxGrant = 1_000_000

func (d Deps) grantCredits(r *ui.Request, of access.Account) (ui.Answer, error) {
	var wrong []domain.Detail
	amount, err := strconv.Atoi(strings.TrimSpace(r.PostFormValue("amount")))
	if err != nil || amount < 1 || amount > maxGrant {
		wrong = append(wrong, domain.Detail{Path: "amount", Message: "must be a number from 1 to 1,000,000"})
	}
	detail := ui.Credits(domain.Credits(amount))
	days := 0
	if text := strings.TrimSpace(r.PostFormValue("days")); text != "" {
		if days, err = strconv.Atoi(text); err != nil || days < 1 || days > 3650 {
			wrong = append(wrong, domain.Detail{Path: "days", Message: "must be a number from 1 to 3650"})
		}
		detail += " for " + ui.Count(days, "day")
	}
	if len(wrong) > 0 {
		return ui.Answer{}, domain.Invalid(wrong...)
	}
	return d.onAccount(r, of.ID, oversight.GrantCredits, detail,
		func(ctx context.Context, cause command.Cause, id string) (domain.Position, error) {
			var until *time.Time
			if days > 0 {
				now, err := d.Commands.AccountTime(ctx, command.Cause{AccountID: id, Sandbox: of.Sandbox})
				if err != nil {
					return domain.Position{}, err
				}
				end := now.Add(time.Duration(days) * 24 * time.Hour)
				until = &end
			}
			_, at, err := d.Commands.GrantCredits(ctx, cause, id, domain.Credits(amount), until,
				strings.TrimSpace(r.PostFormValue("reason")))
			return at, err
		})
}

func (d Deps) suspend(r *ui.Request, of access.Account) (ui.Answer, error) {
	return d.onAccount(r, of.ID, oversight.Suspend, "", d.Commands.SuspendAccount)
}

func (d Deps) reinstate(r *ui.Request, of access.Account) (ui.Answer, error) {
	return d.onAccount(r, of.ID, oversight.Reinstate, "", d.Commands.ReinstateAccount)
}

func (d Deps) choosePool(r *ui.Request, of access.Account) (ui.Answer, error) {
	poolID := r.PostFormValue("pool")
	detail := "any checker"
	if poolID != "" {
		p, err := d.Reads.Pools.Pool(r.Context(), poolID)
		if err != nil {
			return ui.Answer{}, err
		}
		detail = "the pool " + p.Name
	}
	return d.onAccount(r, of.ID, oversight.ChoosePool, detail,
		func(ctx context.Context, cause command.Cause, id string) (domain.Position, error) {
			return d.Commands.ChoosePool(ctx, cause, id, poolID)
		})
}
