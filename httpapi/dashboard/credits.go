package dashboard

import (
	"humanqa/domain"
	"humanqa/httpapi/ui"
	"humanqa/projections/credits"
	"humanqa/projections/ledger"
)

type creditsView struct {
	Balance credits.Balance
	Entries []ledger.Entry
	Sum     ledger.Sum
	Sound   bool
	Pager   pager
	Prices  prices
}

func (d Deps) credits(r *ui.Request) (ui.Answer, error) {
	now, err := d.now(r)
	if err != nil {
		return ui.Answer{}, err
	}
	page := pageOf(r)
	var v creditsView
	if v.Balance, err = d.Reads.Credits.Balance(r.Context(), r.Account.ID, now); err != nil {
		return ui.Answer{}, err
	}
	if v.Entries, err = d.Reads.Ledger.Entries(r.Context(), r.Account.ID, pageSize, (page-1)*pageSize); err != nil {
		return ui.Answer{}, err
	}
	if v.Sum, err = d.Reads.Ledger.Sum(r.Context(), r.Account.ID); err != nil {
		return ui.Answer{}, err
	}
	v.Sound = v.Sum.Sum == v.Sum.Balance
	v.Pager = newPager(r, page, len(v.Entries), v.Sum.Entries)
	return ui.Show("credits", "Credits", v, domain.CreditsStream(r.Account.ID))
}
