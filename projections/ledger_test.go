package projections_test

import (
	"math/rand/v2"
	"slices"
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
	all, err := reads.Entries(w.Ctx(), "acc", 10, 0)
	must.NoError(t, err)
	var sum domain.Credits
	for _, e := range all {
		sum += e.Change
	}
	if len(all) != 5 || sum != 10 || all[0].Balance != 10 {
		t.Errorf("%d entries add up to %d, the newest has %d", len(all), sum, all[0].Balance)
	}
	none, err := reads.DayEnds(w.Ctx(), "nobody", modeltest.Noon, 30)
	must.NoError(t, err)
	modeltest.Same(t, len(none), 0)
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

const longLedgerSQL = `
INSERT INTO {ledger}.ledger_entries (revision, change, expired, balance, at, lots, account_id, kind, job_id, reason, actor, request_id)
SELECT n, 1, 0, n + 1, timestamptz '2026-01-01Z' + n * interval '4 minutes', '[]', 'acc', 'granted', '', '', 'operator', ''
FROM generate_series(0, 29999) n;
ANALYZE {ledger}.ledger_entries`

// However long a ledger is, a page of it, a month's bounds and the ends of thirty days cost
// what they show.
func TestALongLedgerIsReadAsFarAsItIsShown(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, ledger.Projector)
	reads := ledger.NewReads(w.DB)
	w.Exec(`CREATE VIEW readmodel.jobs AS SELECT ''::text AS id, ''::text AS account_id, ''::text AS title WHERE false`)
	w.Exec(longLedgerSQL)
	w.DB.SetMaxOpenConns(1) // a session tells what it has read
	count := func() int {
		w.Exec("SELECT pg_stat_force_next_flush()")
		w.Exec("SELECT") // its end tells
		return w.Count(`
SELECT t.seq_tup_read + (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes i WHERE i.relid = t.relid)
FROM pg_stat_user_tables t
WHERE t.relname = 'ledger_entries'`)
	}
	day := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC) // 11,160 entries are before it
	for _, c := range []struct {
		name string
		most int
		read func() error
	}{
		{"a page", 60, func() error {
			page, err := reads.Entries(w.Ctx(), "acc", 51, 0)
			if len(page) != 51 || page[0].Balance != 30000 {
				t.Errorf("a page of %d entries", len(page))
			}
			return err
		}},
		{"the ends of thirty days", 30 * 6, func() error {
			days, err := reads.DayEnds(w.Ctx(), "acc", day, 30)
			if len(days) != 30 || days[0] != (ledger.DayEnd{Day: day, Balance: 11160 + 360}) || days[29].Balance != 11160+30*360 {
				t.Errorf("the balances at the ends of days: %v", days)
			}
			return err
		}},
		{"the bounds of a month", 12, func() error {
			s, err := reads.Statement(w.Ctx(), "acc", day, day.AddDate(0, 1, 0), ledger.Whole)
			modeltest.Same(t, s, ledger.Statement{From: 11160, To: 21240, Opening: 11160, Closing: 21240})
			return err
		}},
	} {
		for range 7 { // Postgres plans anew five times, and then for any parameters
			must.NoError(t, c.read())
		}
		before := count()
		must.NoError(t, c.read())
		if got := count() - before; got == 0 || got > c.most {
			t.Errorf("%s read %d rows, not 1 to %d", c.name, got, c.most)
		}
	}
}

// Clocks that differ by some seconds, and entries of one time, put each entry into one
// month, and days end where a statement would.
func TestAMonthBeginsWithTheFirstEntryOfItsTime(t *testing.T) {
	t.Parallel()
	w := modeltest.New(t, ledger.Projector)
	reads := ledger.NewReads(w.DB)
	const days, nightly = 12, 40
	day := func(n int) time.Time { return time.Date(2026, 2, 1+n, 0, 0, 0, 0, time.UTC) }
	var at []time.Time
	for n := range days {
		for i := range nightly { // in order but for up to 50 seconds, and many in the same one
			at = append(at, day(n).Add(time.Duration(5*(i-nightly/2)+rand.IntN(50))*time.Second))
			w.Exec(`INSERT INTO {ledger}.ledger_entries (revision, change, expired, balance, at, lots, account_id, kind, job_id, reason, actor, request_id)
VALUES ($1::bigint, 1, 0, $1::bigint + 1, $2, '[]', 'acc', 'granted', '', '', 'operator', '')`, len(at)-1, at[len(at)-1])
		}
	}
	behind := func(moment time.Time) uint64 {
		if first := slices.IndexFunc(at, func(at time.Time) bool { return !at.Before(moment) }); first >= 0 {
			return uint64(first)
		}
		return uint64(len(at))
	}
	for range 200 {
		from, to := at[rand.IntN(len(at))], at[rand.IntN(len(at))].Add(time.Second)
		whole := uint64(rand.IntN(2 * len(at)))
		got, err := reads.Statement(w.Ctx(), "acc", from, to, whole)
		must.NoError(t, err)
		first, end := min(behind(from), behind(to), whole), min(behind(to), whole)
		modeltest.Same(t, got, ledger.Statement{From: first, To: end, Opening: domain.Credits(first), Closing: domain.Credits(end)})
	}
	ends, err := reads.DayEnds(w.Ctx(), "acc", day(-2), days+4)
	must.NoError(t, err)
	for n, end := range ends {
		modeltest.Same(t, end, ledger.DayEnd{Day: day(n - 2), Balance: domain.Credits(behind(day(n - 1)))})
	}
	modeltest.Same(t, len(ends), days+4)
}
