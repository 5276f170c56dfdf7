package pool_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/pool"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[pool.State]

func given(t *testing.T, events ...domain.Event) *scenario.Given[pool.State] {
	return scenario.New(t, pool.Evolve, events...)
}

func create(name, accountID string) decide {
	return func(s pool.State) ([]domain.Event, error) {
		return pool.DecideCreate(s, pool.Created{Name: name, AccountID: accountID})
	}
}

func add(id string) decide {
	return func(s pool.State) ([]domain.Event, error) { return pool.DecideAdd(s, id) }
}

func remove(id string) decide {
	return func(s pool.State) ([]domain.Event, error) { return pool.DecideRemove(s, id) }
}

func TestAPool(t *testing.T) {
	t.Parallel()
	made, ann, bob := &pool.Created{Name: "Banking"}, &pool.CheckerAdded{CheckerID: "ann"}, &pool.CheckerAdded{CheckerID: "bob"}
	given(t).When(create(" Banking ", "")).Events(made)
	given(t, made).When(create("Banking", "")).Nothing()
	given(t, made).When(create("Banking", "acme")).Conflict("the pool exists already")
	for _, name := range []string{"", "  ", "a\x00b", strings.Repeat("x", 81)} {
		given(t).When(create(name, "")).Invalid("name")
	}
	given(t, made).When(add("ann")).Events(ann)
	given(t, made, ann).When(add("ann")).Nothing()
	given(t).When(add("ann")).NotFound("pool")
	g := given(t, made, ann, bob).When(remove("ann")).Events(&pool.CheckerRemoved{CheckerID: "ann"})
	if s := g.State(); s.Has("ann") || !s.Has("bob") {
		t.Errorf("the pool holds %v", s.Checkers)
	}
	given(t, made).When(remove("ann")).Nothing()
	given(t).When(remove("ann")).NotFound("pool")
}

func TestAnAccountsOwnPoolServesNobodyElse(t *testing.T) {
	t.Parallel()
	open, own := given(t, &pool.Created{Name: "x"}).State(), given(t, &pool.Created{Name: "x", AccountID: "acme"}).State()
	if !open.Serves("acme") || !open.Serves("zeta") || !own.Serves("acme") || own.Serves("zeta") || (pool.State{}).Serves("acme") {
		t.Error("a pool serves the wrong accounts")
	}
}
