package projections

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
)

func TestABalanceShowsWhatCanBeSpentNow(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	day := func(n int) *time.Time {
		d := noon.AddDate(0, 0, n)
		return &d
	}
	w.log.append(domain.CreditsStream("acc"),
		&credits.Granted{LotID: "gone", Amount: 7, ExpiresAt: day(-1), BalanceAfter: 7},
		&credits.Granted{LotID: "later", Amount: 20, ExpiresAt: day(20), BalanceAfter: 27},
		&credits.Granted{LotID: "soon", Amount: 10, ExpiresAt: day(2), BalanceAfter: 37},
		&credits.Granted{LotID: "far", Amount: 40, ExpiresAt: day(31), BalanceAfter: 77},
		&credits.Granted{LotID: "ever", Amount: 80, BalanceAfter: 157},
		&credits.Debited{JobID: "j1", Amount: 9, Parts: []credits.Part{{LotID: "gone", Amount: 3}, {LotID: "soon", Amount: 6}}, BalanceAfter: 148},
		&credits.Debited{JobID: "j2", Amount: 5, Parts: []credits.Part{{LotID: "ever", Amount: 5}}, BalanceAfter: 143},
		&credits.Refunded{JobID: "j1", Amount: 9, Expired: 3, Parts: []credits.Part{{LotID: "gone", Amount: 3, Expired: true}, {LotID: "soon", Amount: 6}}, BalanceAfter: 149})
	w.reach(w.sup)
	balance := func(now time.Time) Balance {
		t.Helper()
		b, err := w.reads.Credits.Balance(w.ctx(), "acc", now)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	// The rest of "gone" has left the total although its expiry is not recorded.
	same(t, balance(noon), Balance{Available: 145, Used: 5, Total: 150, Expiring: []ExpiringCredits{
		{Amount: 10, ExpiresAt: *day(2)}, {Amount: 20, ExpiresAt: *day(20)},
	}})
	// A lot is gone at the very instant at which it expires.
	same(t, balance(*day(2)), Balance{Available: 135, Used: 5, Total: 140, Expiring: []ExpiringCredits{
		{Amount: 20, ExpiresAt: *day(20)}, {Amount: 40, ExpiresAt: *day(31)},
	}})

	w.log.append(domain.CreditsStream("acc"), &credits.LotExpired{LotID: "gone", Amount: 4, BalanceAfter: 145})
	w.reach(w.sup)
	if b := balance(noon); b.Available != 145 || b.Total != 150 {
		t.Errorf("recording the expiry changed the balance: %+v", b)
	}
	empty, err := w.reads.Credits.Balance(w.ctx(), "nobody", noon)
	if err != nil {
		t.Fatal(err)
	}
	same(t, empty, Balance{})
	w.sound(w.sup, "credits")
}

// The ledger's own fold and the read model must agree whatever happens.
func TestBalancesAgreeWithTheLedger(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	var (
		state credits.State
		jobs  int
		now   = noon
	)
	for step := range 400 {
		var (
			events []domain.Event
			err    error
		)
		now = now.Add(time.Duration(dice.IntN(3600)) * time.Second)
		switch dice.IntN(8) {
		case 0:
			var expires *time.Time
			if dice.IntN(3) > 0 {
				e := now.Add(time.Duration(1+dice.IntN(72)) * time.Hour)
				expires = &e
			}
			events, err = credits.DecideGrant(state, fmt.Sprint("l", step), domain.Credits(1+dice.IntN(50)), expires, "", now)
		case 1, 2, 3, 4:
			jobs++
			events, err = credits.DecideDebit(state, fmt.Sprint("j", jobs), domain.Credits(1+dice.IntN(9)), now)
		case 5, 6:
			events, err = credits.DecideRefund(state, fmt.Sprint("j", dice.IntN(jobs+1)), "client", now)
		default:
			events, err = credits.DecideExpire(state, now)
		}
		if err != nil && !domain.IsKind(err, domain.KindPayment) && !domain.IsKind(err, domain.KindNotFound) {
			t.Fatal(err)
		}
		for _, e := range events {
			state = credits.Evolve(state, e)
		}
		w.log.append(domain.CreditsStream("acc"), events...)
		if step%20 != 0 {
			continue
		}
		w.reach(w.sup)
		b, err := w.reads.Credits.Balance(w.ctx(), "acc", now)
		if err != nil {
			t.Fatal(err)
		}
		if b.Available != state.Available(now) || b.Used != state.Used() {
			t.Fatalf("step %d: the read model has %+v, the ledger %d available, %d used", step, b, state.Available(now), state.Used())
		}
	}
	w.sound(w.sup, "credits")
}

func TestAProjectAsItsClientSeesIt(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	text := func(s string) *string { return &s }
	sla := 30
	stream := domain.ProjectStream("p1")
	read := func() Project {
		t.Helper()
		w.reach(w.sup)
		p, err := w.reads.Projects.Get(w.ctx(), "acc", "p1")
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	w.log.append(stream, &project.Created{AccountID: "acc", Name: "shop", Description: text("d"), HookHash: "h1", At: noon})
	want := Project{ID: "p1", AccountID: "acc", Name: "shop", Description: text("d"), CreatedAt: noon, UpdatedAt: noon}
	same(t, read(), want)

	w.log.append(stream,
		&project.SettingsChanged{Name: "shop 2", DefaultURL: text("https://a.example"), DefaultJobType: text("Custom"), DefaultSLAMinutes: &sla, At: *at(1)},
		&project.SecretSet{SecretID: "s1", Sealed: "sealed", At: *at(2)},
		&project.WebhookSet{URL: "https://hook.example", At: *at(2)})
	want.Name, want.Description, want.DefaultURL = "shop 2", nil, text("https://a.example")
	want.DefaultJobType, want.DefaultSLAMinutes, want.UpdatedAt = text("Custom"), &sla, *at(2)
	want.WebhookURL, want.SecretRotations = "https://hook.example", []SecretRotation{}
	same(t, read(), want)

	for i := range 7 {
		w.log.append(stream, &project.SecretSet{SecretID: fmt.Sprint("s", i), Sealed: "sealed", Rotated: true, At: *at(10 + i), UserID: text(fmt.Sprint("u", i))})
	}
	w.log.append(stream, &project.WebhookSet{URL: "https://hook.example", Events: &[]string{}, At: *at(20)},
		&project.WebhookDisabled{DeliveryID: "d1", Reason: "HTTP 500", At: *at(21)})
	want.SecretRotations = nil
	for i := 6; i > 1; i-- {
		want.SecretRotations = append(want.SecretRotations, SecretRotation{At: *at(10 + i), UserID: text(fmt.Sprint("u", i))})
	}
	want.SecretRotatedAt, want.Events, want.UpdatedAt = at(16), &[]string{}, *at(21)
	want.WebhookDisabled, want.DisabledReason = true, "HTTP 500"
	same(t, read(), want)

	w.log.append(stream, &project.WebhookCleared{At: *at(22)})
	want.WebhookURL, want.Events, want.SecretRotations = "", nil, nil
	want.WebhookDisabled, want.DisabledReason, want.UpdatedAt = false, "", *at(22)
	same(t, read(), want)

	for i, overall := range []string{"pass", "pass", "fail", "pass"} {
		w.log.append(domain.JobStream(fmt.Sprint("j", i)), created("acc", func(e *job.Created) { e.ProjectID = "p1" }), claimed("ann"), completed(overall))
	}
	w.log.append(domain.JobStream("running"), created("acc", func(e *job.Created) { e.ProjectID = "p1" }))
	want.JobCount, want.PassRate = 5, 0.75
	same(t, read(), want)

	w.log.append(domain.ProjectStream("p0"), &project.Created{AccountID: "acc", Name: "older", HookHash: "h0", At: *at(-1)})
	w.log.append(domain.ProjectStream("px"), &project.Created{AccountID: "other", Name: "theirs", HookHash: "hx", At: noon})
	w.reach(w.sup)
	list, total, err := w.reads.Projects.List(w.ctx(), "acc", ProjectFilter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	same(t, total, 2)
	same(t, list, []Project{want, {ID: "p0", AccountID: "acc", Name: "older", CreatedAt: *at(-1), UpdatedAt: *at(-1)}})
	if _, err := w.reads.Projects.Get(w.ctx(), "acc", "px"); !domain.IsKind(err, domain.KindNotFound) {
		t.Errorf("another account's project: %v", err)
	}
	if n := w.count("SELECT COUNT(*) FROM readmodel.projects p WHERE p::text LIKE '%sealed%'"); n > 0 {
		t.Error("a secret reached the read model")
	}
	w.sound(w.sup, "projects")
}

func TestKeysAndCheckersAreFoundByHash(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.run(w.sup)
	stream := domain.AccountStream("acc")
	w.log.append(stream, &account.Created{Name: "shop", Sandbox: true}, issued(1),
		&account.KeyIssued{KeyID: "k2", Hash: "hash2", Scope: account.ScopeRead, ProjectID: "p1", ExpiresAt: at(5)})
	w.log.append(domain.CheckerStream("c1"), &checker.Created{Name: "ann", Hash: "hashc", Accounts: []string{"acc"}})
	key := func(hash string) Key {
		t.Helper()
		w.reach(w.sup)
		k, found, err := w.reads.Access.Key(w.ctx(), hash)
		if err != nil || !found {
			t.Fatalf("key %s: %v, %v", hash, found, err)
		}
		return k
	}
	one := Key{KeyID: "k1", AccountID: "acc", Scope: account.ScopeFull, Sandbox: true}
	two := Key{KeyID: "k2", AccountID: "acc", Scope: account.ScopeRead, ProjectID: "p1", ExpiresAt: at(5), Sandbox: true}
	same(t, key("hash1"), one)
	same(t, key("hash2"), two)

	w.log.append(stream, &account.KeyRevoked{KeyID: "k1"}, &account.Suspended{})
	one.Revoked, one.Suspended, two.Suspended = true, true, true
	same(t, key("hash1"), one)
	same(t, key("hash2"), two)

	w.log.append(stream, &account.Reinstated{})
	one.Suspended = false
	same(t, key("hash1"), one)

	if _, found, err := w.reads.Access.Key(w.ctx(), "hashc"); found || err != nil {
		t.Errorf("a checker's key among the API keys: %v, %v", found, err)
	}
	c, found, err := w.reads.Access.Checker(w.ctx(), "hashc")
	if err != nil || !found {
		t.Fatalf("checker: %v, %v", found, err)
	}
	same(t, c, Checker{ID: "c1", Name: "ann", Accounts: []string{"acc"}})
	if _, found, err := w.reads.Access.Checker(w.ctx(), "hash1"); found || err != nil {
		t.Errorf("an API key among the checkers': %v, %v", found, err)
	}
	w.sound(w.sup, "access")
}
