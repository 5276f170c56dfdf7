package account_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[account.State]

func given(t *testing.T, events ...domain.Event) *scenario.Given[account.State] {
	return scenario.New(t, account.Evolve, events...)
}

func created() domain.Event    { return &account.Created{Name: "Acme"} }
func suspended() domain.Event  { return &account.Suspended{Reason: "unpaid"} }
func reinstated() domain.Event { return &account.Reinstated{} }
func issued() domain.Event     { k := key(); return &k }
func revoked() domain.Event    { return &account.KeyRevoked{KeyID: "k1"} }

func key() account.KeyIssued {
	expires := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	return account.KeyIssued{
		KeyID: "k1", Hash: "aa", Prefix: "qa_live_1", Scope: account.ScopeRead, ProjectID: "p1", ExpiresAt: &expires,
	}
}

func create(name string, sandbox bool) decide {
	return func(s account.State) ([]domain.Event, error) { return account.DecideCreate(s, name, sandbox) }
}

func suspend(s account.State) ([]domain.Event, error) { return account.DecideSuspend(s, "unpaid") }

func issue(change func(*account.KeyIssued)) decide {
	return func(s account.State) ([]domain.Event, error) {
		k := key()
		change(&k)
		return account.DecideIssueKey(s, k)
	}
}

func asIs(*account.KeyIssued) {}

func revoke(id string) decide {
	return func(s account.State) ([]domain.Event, error) { return account.DecideRevokeKey(s, id) }
}

func TestAnAccountIsOpenedOnce(t *testing.T) {
	t.Parallel()
	t.Run("with its name and kind", func(t *testing.T) {
		given(t).When(create("Acme", true)).Events(&account.Created{Name: "Acme", Sandbox: true})
	})
	t.Run("but not without a name", func(t *testing.T) {
		given(t).When(create(" \t", false)).Invalid("name")
	})
	t.Run("and not again under another name or kind", func(t *testing.T) {
		given(t, created()).When(create("Other", false)).Conflict("the account exists already")
		given(t, created()).When(create("Acme", true)).Conflict("the account exists already")
	})
}

func TestASuspensionLastsUntilTheReinstatement(t *testing.T) {
	t.Parallel()
	given(t, created()).When(suspend).Events(suspended())
	given(t, created(), suspended()).When(account.DecideReinstate).Events(reinstated())
	given(t, created(), suspended(), reinstated()).When(suspend).Events(suspended())
	given(t, created()).When(account.DecideReinstate).Nothing()

	if !given(t, created(), suspended()).State().Suspended {
		t.Error("the account is not suspended")
	}
	if given(t, created(), suspended(), reinstated()).State().Suspended {
		t.Error("the account is suspended after its reinstatement")
	}
}

func TestAKeyIsIssued(t *testing.T) {
	t.Parallel()
	t.Run("with everything that limits it", func(t *testing.T) {
		s := given(t, created()).When(issue(asIs)).Events(issued()).State()
		k, want := s.Keys["k1"], key()
		if k.Hash != want.Hash || k.Prefix != want.Prefix || k.Scope != want.Scope || k.ProjectID != want.ProjectID ||
			!k.ExpiresAt.Equal(*want.ExpiresAt) || k.Revoked {
			t.Errorf("the account knows the key as %+v", k)
		}
	})
	t.Run("also while the account is suspended", func(t *testing.T) {
		given(t, created(), suspended()).When(issue(asIs)).Events(issued())
	})
	t.Run("with a scope out of two", func(t *testing.T) {
		given(t, created()).When(issue(func(k *account.KeyIssued) { k.Scope = "admin" })).Invalid("scope")
	})
	t.Run("under an id of its own", func(t *testing.T) {
		given(t, created(), issued()).
			When(issue(func(k *account.KeyIssued) { k.Hash = "bb" })).
			Conflict("the key id is taken")
	})
	t.Run("and a revoked one does not come back", func(t *testing.T) {
		given(t, created(), issued(), revoked()).When(issue(asIs)).Nothing()
	})
}

func TestAKeyIsRevokedForGood(t *testing.T) {
	t.Parallel()
	s := given(t, created(), issued()).When(revoke("k1")).Events(revoked()).State()
	if !s.Keys["k1"].Revoked {
		t.Error("the key is not revoked")
	}
	given(t, created(), issued()).When(revoke("k2")).NotFound("key")
}

func TestAnUnknownAccountIsNotFound(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]decide{
		"suspend": suspend, "reinstate": account.DecideReinstate, "issue a key": issue(asIs), "revoke a key": revoke("k1"),
	} {
		t.Run(name, func(t *testing.T) { given(t).When(d).NotFound("account") })
	}
}

func advance(id string, by time.Duration) decide {
	return func(s account.State) ([]domain.Event, error) { return account.DecideAdvance(s, id, by) }
}

func advanced(id string, seconds, ahead int64) domain.Event {
	return &account.ClockAdvanced{AdvanceID: id, Seconds: seconds, OffsetSeconds: ahead}
}

func TestASandboxesClockIsMoved(t *testing.T) {
	t.Parallel()
	box := &account.Created{Name: "Box", Sandbox: true}
	year := int64(account.MaxAdvance / time.Second)
	t.Run("on and on", func(t *testing.T) {
		s := given(t, box).When(advance("a", time.Minute)).Events(advanced("a", 60, 60)).
			When(advance("b", account.MaxAdvance)).Events(advanced("b", year, year+60)).State()
		if s.Ahead != account.MaxAdvance+time.Minute || s.Advances["a"] != time.Minute {
			t.Errorf("the clock is %s ahead, was %s after the first move", s.Ahead, s.Advances["a"])
		}
	})
	t.Run("once a call", func(t *testing.T) {
		given(t, box, advanced("a", 60, 60), advanced("b", 60, 120)).When(advance("a", time.Hour)).Nothing()
	})
	t.Run("not back, and not too far at once", func(t *testing.T) {
		for _, by := range []time.Duration{0, -time.Hour, time.Second - 1, account.MaxAdvance + 1} {
			given(t, box).When(advance("a", by)).Invalid("seconds")
		}
	})
	t.Run("ten years at most", func(t *testing.T) {
		given(t, box, advanced("a", year, 9*year)).When(advance("b", account.MaxAdvance)).Events(advanced("b", year, 10*year))
		given(t, box, advanced("a", year, 10*year)).When(advance("b", time.Second)).
			Conflict("the clock would be more than ten years ahead")
	})
	t.Run("but no other account's", func(t *testing.T) {
		given(t, created()).When(advance("a", time.Hour)).Refused(account.ErrNoSandbox)
		given(t).When(advance("a", time.Hour)).NotFound("account")
	})
}

func erase(s account.State) ([]domain.Event, error) {
	return account.DecideErase(s, "Ann Operator", "asked for by the customer")
}

func TestAnErasedAccountIsNoMore(t *testing.T) {
	t.Parallel()
	erased := &account.Erased{By: "Ann Operator", Reason: "asked for by the customer"}
	other := key()
	other.KeyID = "k0"
	t.Run("its keys end with it, whether or not it was suspended", func(t *testing.T) {
		given(t, created(), issued(), &other, revoked()).When(erase).Events(&account.KeyRevoked{KeyID: "k0"}, erased)
		given(t, created(), suspended()).When(erase).Events(erased)
	})
	t.Run("once, by somebody, for a reason", func(t *testing.T) {
		given(t, created(), erased).When(func(s account.State) ([]domain.Event, error) { return account.DecideErase(s, "", "") }).Nothing()
		given(t, created()).When(func(s account.State) ([]domain.Event, error) { return account.DecideErase(s, " ", "") }).Invalid("by", "reason")
		given(t).When(erase).NotFound("account")
	})
	t.Run("and nothing goes on with it", func(t *testing.T) {
		box := &account.Created{Name: "Box", Sandbox: true}
		for _, d := range []decide{account.DecideReinstate, issue(asIs), advance("a", time.Hour)} {
			given(t, box, erased).When(d).Refused(account.ErrErased)
		}
		given(t, created(), erased).When(suspend).Nothing()
		if s := given(t, created(), erased).State(); !s.Suspended || !s.Erased || s.Finished {
			t.Errorf("%+v", s)
		}
	})
	t.Run("until nothing is left", func(t *testing.T) {
		given(t, created()).When(account.DecideFinishErasure).Conflict("the account is not erased")
		given(t, created(), erased).When(account.DecideFinishErasure).Events(&account.ErasureFinished{})
		given(t, created(), erased, &account.ErasureFinished{}).When(account.DecideFinishErasure).Nothing()
	})
}

func TestRefusedTestsAreRecordedUntilTheErasure(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 2, 10, 0, 0, time.UTC)
	told := account.SubmissionsRefused{
		From: at, To: at.Add(time.Second), Counts: []account.RefusedCount{{Reason: domain.CodeInsufficientCredits, Source: "api", Tests: 3}},
	}
	refused := func(s account.State) ([]domain.Event, error) { return account.DecideRefused(s, told) }
	given(t, created(), suspended()).When(refused).Happens(&told)
	t.Run("by a sandbox's own clock", func(t *testing.T) {
		ahead := told
		ahead.From, ahead.To = at.Add(time.Hour), at.Add(time.Hour+time.Second)
		given(t, &account.Created{Name: "Box", Sandbox: true}, advanced("a", 3600, 3600)).When(refused).Happens(&ahead)
	})
	given(t, created(), &account.Erased{By: "Ann Operator", Reason: "asked for"}).When(refused).Nothing()
	given(t).When(refused).Nothing()
}
