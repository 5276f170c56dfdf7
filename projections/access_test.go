package projections_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/internal/testing/modeltest"
	"humanqa/projections/access"
)

func TestKeysAndCheckersAreFoundByHash(t *testing.T) {
	t.Parallel()
	w := setup(t, access.Projector, access.Erasures)
	w.Run(w.Sup)
	stream := domain.AccountStream("acc")
	w.Log.Record(stream, &account.Created{Name: "shop", Sandbox: true}, modeltest.Issued(1),
		&account.KeyIssued{KeyID: "k2", Hash: "hash2", Scope: account.ScopeRead, ProjectID: "p1", ExpiresAt: modeltest.At(5)})
	w.Log.Record(domain.CheckerStream("c1"), &checker.Created{Name: "ann", Hash: "hashc", Accounts: []string{"acc"}})
	key := func(hash string) access.Key {
		t.Helper()
		w.Reach(w.Sup)
		k, found, err := w.reads.Access.Key(w.Ctx(), hash)
		if err != nil || !found {
			t.Fatalf("key %s: %v, %v", hash, found, err)
		}
		return k
	}
	one := access.Key{KeyID: "k1", AccountID: "acc", Scope: account.ScopeFull, Sandbox: true}
	two := access.Key{KeyID: "k2", AccountID: "acc", Scope: account.ScopeRead, ProjectID: "p1", ExpiresAt: modeltest.At(5), Sandbox: true}
	modeltest.Same(t, key("hash1"), one)
	modeltest.Same(t, key("hash2"), two)

	w.Log.Record(stream, &account.KeyRevoked{KeyID: "k1"}, &account.Suspended{})
	one.Revoked, one.Suspended, two.Suspended = true, true, true
	modeltest.Same(t, key("hash1"), one)
	modeltest.Same(t, key("hash2"), two)

	w.Log.Record(stream, &account.Reinstated{})
	one.Suspended = false
	modeltest.Same(t, key("hash1"), one)

	if _, found, err := w.reads.Access.Key(w.Ctx(), "hashc"); found || err != nil {
		t.Errorf("a checker's key among the API keys: %v, %v", found, err)
	}
	c, found, err := w.reads.Access.Checker(w.Ctx(), "hashc")
	if err != nil || !found {
		t.Fatalf("checker: %v, %v", found, err)
	}
	modeltest.Same(t, c, access.Checker{ID: "c1", Name: "ann", Accounts: []string{"acc"}})
	if _, found, err := w.reads.Access.Checker(w.Ctx(), "hash1"); found || err != nil {
		t.Errorf("an API key among the checkers': %v, %v", found, err)
	}
	w.Sound(w.Sup, "access")
}
