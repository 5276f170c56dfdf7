package access

import (
	"errors"
	"fmt"
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/internal/testing/modeltest"
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
	type listed[T any] struct {
		Found []T
		Total int
		Err   error
	}
	shop, bank := Account{ID: "acc0", Name: "shop"}, Account{ID: "acc1", Name: "bank", Sandbox: true}
	other := Account{ID: "acc2", Name: "shop", Suspended: true}
	gone := Account{ID: "acc3", Name: ErasedName, Suspended: true}
	if one, err := w.reads.Account(w.Ctx(), "acc3"); err != nil || one.Erased == nil || one.Finished {
		t.Errorf("the erased account: %+v, %v", one, err)
	} else {
		gone.Erased = one.Erased
	}
	for page, want := range map[Page][]Account{
		{Limit: 10}:           {gone, bank, shop, other},
		{Limit: 3}:            {gone, bank, shop},
		{Limit: 2, Offset: 3}: {other},
		{Limit: 2, Offset: 9}: nil,
	} {
		found, total, err := w.reads.Accounts(w.Ctx(), page)
		modeltest.Same(t, listed[Account]{found, total, err}, listed[Account]{want, 4, nil})
	}
	one, err := w.reads.Account(w.Ctx(), "acc2")
	modeltest.Same(t, listed[Account]{[]Account{one}, 1, err}, listed[Account]{[]Account{other}, 1, nil})
	var refusal *domain.Error
	if _, err := w.reads.Account(w.Ctx(), "acc4"); !errors.As(err, &refusal) || refusal.Kind != domain.KindNotFound {
		t.Errorf("an account that is not there: %v", err)
	}
	keys, total, err := w.reads.Keys(w.Ctx(), "acc2", Page{Limit: 10})
	modeltest.Same(t, listed[IssuedKey]{keys, total, err}, listed[IssuedKey]{[]IssuedKey{
		{ID: "k2", Hint: "qa_live_2", Scope: account.ScopeFull},
		{ID: "k3", Hint: "qa_live_3", Scope: account.ScopeRead, ProjectID: "p", ExpiresAt: modeltest.At(5)},
		{ID: "k1", Hint: "qa_live_1", Scope: account.ScopeFull, Revoked: true},
	}, 3, nil})
	w.Log.Record(domain.AccountStream("acc3"), &account.ErasureFinished{})
	w.Reach(w.Sup)
	if one, err := w.reads.Account(w.Ctx(), "acc3"); err != nil || !one.Finished {
		t.Errorf("the erased account: %+v, %v", one, err)
	}
	checkers, total, err := w.reads.Checkers(w.Ctx(), Page{Limit: 1, Offset: 1})
	modeltest.Same(t, listed[Checker]{checkers, total, err}, listed[Checker]{[]Checker{{ID: "c1", Name: "bob", Accounts: []string{"acc0"}}}, 2, nil})
	w.Sound(w.Sup, "access")
	w.Sound(w.Sup, "erasures")
}
