package projections_test

import (
	"errors"
	"fmt"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/internal/testing/modeltest"
	"humanqa/projections/access"
)

func TestOperatorsListWhoThereIs(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	for i, name := range []string{"shop", "bank", "shop"} {
		id := fmt.Sprintf("acc%d", i)
		w.Log.Record(domain.AccountStream(id), &account.Created{Name: name, Sandbox: i == 1})
	}
	w.Log.Record(domain.AccountStream("acc2"), &account.Suspended{},
		&account.KeyIssued{KeyID: "k2", Hash: "h2", Prefix: "qa_live_2", Scope: account.ScopeFull},
		&account.KeyIssued{KeyID: "k1", Hash: "h1", Prefix: "qa_live_1", Scope: account.ScopeFull},
		&account.KeyIssued{KeyID: "k3", Hash: "h3", Prefix: "qa_live_3", Scope: account.ScopeRead, ProjectID: "p", ExpiresAt: modeltest.At(5)},
		&account.KeyRevoked{KeyID: "k1"})
	w.Log.Record(domain.AccountStream("acc3"), &account.Created{Name: "gone"}, &account.Erased{By: "ann", Reason: "asked for"})
	w.Log.Record(domain.CheckerStream("c1"), &checker.Created{Name: "bob", Hash: "hb", Accounts: []string{"acc0"}})
	w.Log.Record(domain.CheckerStream("c2"), &checker.Created{Name: "ann", Hash: "ha"})
	w.Reach(w.Sup)
	type list[T any] struct {
		Found []T
		Total int
		Err   error
	}
	shop, bank := access.Account{ID: "acc0", Name: "shop"}, access.Account{ID: "acc1", Name: "bank", Sandbox: true}
	other := access.Account{ID: "acc2", Name: "shop", Suspended: true}
	gone := access.Account{ID: "acc3", Name: access.ErasedName, Suspended: true}
	if one, err := w.reads.Access.Account(w.Ctx(), "acc3"); err != nil || one.Erased == nil || one.Finished {
		t.Errorf("the erased account: %+v, %v", one, err)
	} else {
		gone.Erased = one.Erased
	}
	for page, want := range map[access.Page][]access.Account{
		{Limit: 10}:           {gone, bank, shop, other},
		{Limit: 3}:            {gone, bank, shop},
		{Limit: 2, Offset: 3}: {other},
		{Limit: 2, Offset: 9}: nil,
	} {
		listed, total, err := w.reads.Overall.Accounts(w.Ctx(), "", page, modeltest.Noon)
		var found []access.Account
		for _, one := range listed {
			found = append(found, one.Account)
		}
		modeltest.Same(t, list[access.Account]{found, total, err}, list[access.Account]{want, 4, nil})
	}
	one, err := w.reads.Access.Account(w.Ctx(), "acc2")
	modeltest.Same(t, list[access.Account]{[]access.Account{one}, 1, err}, list[access.Account]{[]access.Account{other}, 1, nil})
	var refusal *domain.Error
	if _, err := w.reads.Access.Account(w.Ctx(), "acc4"); !errors.As(err, &refusal) || refusal.Kind != domain.KindNotFound {
		t.Errorf("an account that is not there: %v", err)
	}
	keys, total, err := w.reads.Access.Keys(w.Ctx(), "acc2", access.Page{Limit: 10})
	modeltest.Same(t, list[access.IssuedKey]{keys, total, err}, list[access.IssuedKey]{[]access.IssuedKey{
		{ID: "k2", Hint: "qa_live_2", Scope: account.ScopeFull},
		{ID: "k3", Hint: "qa_live_3", Scope: account.ScopeRead, ProjectID: "p", ExpiresAt: modeltest.At(5)},
		{ID: "k1", Hint: "qa_live_1", Scope: account.ScopeFull, Revoked: true},
	}, 3, nil})
	w.Log.Record(domain.AccountStream("acc3"), &account.ErasureFinished{})
	w.Reach(w.Sup)
	if one, err := w.reads.Access.Account(w.Ctx(), "acc3"); err != nil || !one.Finished {
		t.Errorf("the erased account: %+v, %v", one, err)
	}
	checkers, total, err := w.reads.Overall.Checkers(w.Ctx(), "", "", access.Page{Limit: 1, Offset: 1})
	if err != nil || total != 2 || len(checkers) != 1 {
		t.Fatalf("%d of %d checkers: %v", len(checkers), total, err)
	}
	modeltest.Same(t, checkers[0].Checker, access.Checker{ID: "c1", Name: "bob", Accounts: []string{"acc0"}})
	w.Sound(w.Sup, "access")
	w.Sound(w.Sup, "erasures")
}
