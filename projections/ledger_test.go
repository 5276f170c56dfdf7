package projections_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/ledger"
)

// Each entry shows the balance that its event says, and all of them add up to
// the newest one: also where a refund came back to a lot that had expired.
func TestTheEntriesAddUpToTheBalance(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, ledger.Projector)
	reads := ledger.NewReads(w.DB)
	w.Exec(`CREATE VIEW readmodel.jobs AS SELECT 'j1'::text AS id, 'acc'::text AS account_id, 'Checkout'::text AS title`)
	w.Run(w.Sup)
	w.Log.Record(domain.CreditsStream("acc"),
		&credits.Granted{LotID: "l1", Amount: 20, Reason: "Welcome", BalanceAfter: 20},
		&credits.Debited{JobID: "j1", Amount: 5, BalanceAfter: 15},
		&credits.Debited{JobID: "j2", Amount: 10, BalanceAfter: 5},
		&credits.Refunded{JobID: "j2", Amount: 10, Expired: 4, Reason: "client", BalanceAfter: 11},
		&credits.LotExpired{LotID: "l1", Amount: 1, BalanceAfter: 10})
	w.Log.Record(domain.CreditsStream("other"), &credits.Granted{LotID: "l2", Amount: 7, BalanceAfter: 7})
	w.Reach(w.Sup)

	got, err := reads.Entries(w.Ctx(), "acc", 3, 1)
	must.NoError(t, err)
	at := modeltest.Noon
	if len(got) == 3 {
		at = got[0].At
	}
	modeltest.Same(t, got, []ledger.Entry{
		{Kind: ledger.Refunded, Change: 6, Expired: 4, Balance: 11, JobID: "j2", Reason: "client", At: at},
		{Kind: ledger.Debited, Change: -10, Balance: 5, JobID: "j2", At: at},
		{Kind: ledger.Debited, Change: -5, Balance: 15, JobID: "j1", JobTitle: "Checkout", At: at},
	})
	sum, err := reads.Sum(w.Ctx(), "acc")
	must.NoError(t, err)
	modeltest.Same(t, sum, ledger.Sum{Entries: 5, Sum: 10, Balance: 10})
	none, err := reads.Sum(w.Ctx(), "nobody")
	must.NoError(t, err)
	modeltest.Same(t, none, ledger.Sum{})
	w.Sound(w.Sup, "ledger")
}

func TestTheAuthorOfAnEntryIsNeverAChecker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ actor, reason, want string }{
		{"key:k", "", "key:k"}, {"person:p", "client", "person:p"}, {"operator:olga", "untestable", "operator"},
		{"policy:sla", "sla", "service"}, {"checker:ann", "untestable", "service"}, {"person:ann", "untestable", "service"},
	} {
		line := ledger.Line{Entry: ledger.Entry{Reason: c.reason}, Actor: c.actor}
		if got := line.Author(); got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.actor, c.reason, got, c.want)
		}
	}
}

// A week of use and more says until when credits last; less says nothing.
func TestCreditsLastAtThePaceOfTheLastWeeks(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, ledger.Projector)
	w.Run(w.Sup)
	now := modeltest.Noon
	spends := func(accountID string, days int, amount domain.Credits) {
		w.Log.RecordAs(domain.Metadata{Time: now.AddDate(0, 0, -days)}, domain.CreditsStream(accountID),
			&credits.Debited{JobID: "j", Amount: amount, BalanceAfter: 100})
	}
	spends("steady", 20, 500) // too long ago
	spends("steady", 10, 15)
	spends("steady", 1, 10)
	w.Log.RecordAs(domain.Metadata{Time: now.AddDate(0, 0, -1)}, domain.CreditsStream("steady"), &credits.Refunded{JobID: "j", Amount: 5, BalanceAfter: 100})
	spends("new", 3, 15)
	spends("rare", 10, 1)
	w.Reach(w.Sup)
	for accountID, want := range map[string]time.Time{"steady": now.AddDate(0, 0, 5), "new": {}, "rare": {}, "none": {}} {
		at, err := ledger.NewReads(w.DB).Lasts(w.Ctx(), accountID, 10, now)
		must.NoError(t, err)
		if !at.Equal(want) {
			t.Errorf("%s: until %s, want %s", accountID, at, want)
		}
	}
	if at, err := ledger.NewReads(w.DB).Lasts(w.Ctx(), "steady", 1_000_000_000, now); err != nil || !at.IsZero() {
		t.Errorf("credits for years: until %s, %v", at, err)
	}
}
