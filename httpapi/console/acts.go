package console

import (
	"context"
	"slices"
	"strings"

	"humanqa/domain"
	domainOversight "humanqa/domain/oversight"
	"humanqa/httpapi/ui"
	"humanqa/projections/overall"
	"humanqa/projections/oversight"
)

type actLine struct {
	oversight.Act
	By     string // the operator's name
	Person bool   // the operator has a page
	Did    string
	Name   string // the subject of the act, as people call it
	Href   string // the page of the subject; empty: none
}

type actsView struct {
	oversight.Filter
	Lines   []actLine
	Kinds   []domainOversight.Act
	Account string // the name of the filter's account, and By of its operator
	By      string
	Pager   ui.Pager
}

// acts lists the acts of operators.
func (d Deps) acts(r *ui.Request) (ui.Answer, error) {
	page := pageOf(r)
	f := oversight.Filter{
		PersonID: r.FormValue("by"), AccountID: r.FormValue("account"), Act: domainOversight.Act(r.FormValue("act")),
		Limit: page.Limit, Offset: page.Offset,
	}
	if !slices.Contains(domainOversight.Acts(), f.Act) {
		f.Act = ""
	}
	if strings.ContainsRune(f.PersonID+f.AccountID, 0) {
		return ui.Answer{}, domain.NotFound("act")
	}
	list, total, err := d.Reads.Acts.Acts(r.Context(), f)
	if err != nil {
		return ui.Answer{}, err
	}
	v := actsView{Filter: f, Kinds: domainOversight.Acts()}
	if v.Lines, err = d.actLines(r.Context(), list); err != nil {
		return ui.Answer{}, err
	}
	if v.Account, err = d.Reads.Overall.Name(r.Context(), overall.Accounts, f.AccountID); err != nil {
		return ui.Answer{}, err
	}
	name, err := d.names(r.Context(), f.PersonID)
	if err != nil {
		return ui.Answer{}, err
	}
	v.By = name(f.PersonID)
	v.Pager = ui.NewPager(r, ui.PageOf(r), len(list), total)
	return ui.Show("console-acts", "Audit log", v), nil
}

// latestActs are the latest acts that the filter finds.
func (d Deps) latestActs(ctx context.Context, f oversight.Filter) ([]actLine, error) {
	f.Limit = actsShown
	list, _, err := d.Reads.Acts.Acts(ctx, f)
	if err != nil {
		return nil, err
	}
	return d.actLines(ctx, list)
}

func (d Deps) actLines(ctx context.Context, list []oversight.Act) (lines []actLine, err error) {
	var ids, accounts []string
	for _, a := range list {
		ids = append(ids, a.PersonID, strings.TrimPrefix(a.Subject, domain.PersonStreams))
		accounts = append(accounts, accountIn(a.Subject))
	}
	name, err := d.names(ctx, ids...)
	if err != nil {
		return nil, err
	}
	called, err := d.Reads.Overall.Names(ctx, overall.Accounts, accounts)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		_, outside := domainOversight.WhoOnCommandLine(a.PersonID)
		lines = append(lines, actLine{
			Act: a, By: name(a.PersonID), Person: !outside, Did: a.Act.Words(),
			Name: subjectName(a.Subject, called, name), Href: subjectHref(a.Subject),
		})
	}
	return lines, nil
}

// accountIn is the account whose stream or ledger is the subject; empty: the subject is
// another one.
func accountIn(subject string) string {
	category, id, _ := strings.Cut(subject, "-")
	if category == "account" || category == "credits" {
		return id
	}
	return ""
}

// subjectName names the subject of an act: an account and a person by their names, any other
// by its id.
func subjectName(subject string, accounts map[string]string, person func(id string) string) string {
	if name := accounts[accountIn(subject)]; name != "" {
		return "account " + name
	}
	category, id, isStream := strings.Cut(subject, "-")
	switch {
	case !isStream || len(id) < 8:
		return subject
	case category == "person":
		return person(id)
	case category == "credits":
		category = "account"
	}
	return category + " " + id
}

// subjectHref is the page of an act's subject; empty: there is none.
func subjectHref(subject string) string {
	category, id, isStream := strings.Cut(subject, "-")
	switch category {
	case "account", "credits":
		return "/console/accounts/" + id
	case "person":
		return "/console/people/" + id
	case "pool":
		return "/console/pools/" + id
	case "job":
		return "/console/jobs/" + id
	}
	if isStream {
		return streamHref(subject)
	}
	return ""
}
