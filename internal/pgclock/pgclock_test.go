package pgclock

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/sirupsen/logrus/hooks/test"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestTheTimeIsPostgresWhateverTheMachineSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off     time.Duration // of the machine's clock
		problem string        // %s is about as long
	}{
		"they agree":                  {0, ""},
		"a second is tolerated":       {time.Second, ""},
		"the machine's is behind":     {-10 * time.Second, "Postgres' clock is %s ahead of this machine's"},
		"the machine's is far ahead":  {time.Hour, "Postgres' clock is %s behind this machine's"},
		"the machine's is just ahead": {3 * time.Second, "Postgres' clock is %s behind this machine's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var off atomic.Int64
			off.Store(int64(c.off))
			log, logged := test.NewNullLogger()
			db := pgtest.New(t)
			var clock *Clock
			eventually.True(t, "Postgres says soon enough what time it is", func() bool {
				var err error
				clock, err = Open(t.Context(), db, log, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
				return err == nil && (c.off == 0 || clock.ahead.Load() != 0)
			})
			right := func() bool { // Postgres' is this machine's, in truth
				before, now, after := time.Now(), clock.Now(), time.Now()
				return now.After(before.Add(-time.Second)) && now.Before(after.Add(time.Second))
			}
			if !right() {
				t.Errorf("the time is %s", clock.Now())
			}
			got, length := clock.Problem(), ""
			if c.problem != "" {
				length, _, _ = strings.Cut(strings.TrimPrefix(got, "Postgres' clock is "), " ")
				if off, err := time.ParseDuration(length); err != nil || (off-c.off.Abs()).Abs() > time.Second {
					t.Errorf("it is said to be %q off: %v", length, err)
				}
			}
			if want := strings.ReplaceAll(c.problem, "%s", length); got != want {
				t.Errorf("the problem is %q, want %q", got, want)
			}
			off.Store(0) // somebody sets it right
			eventually.True(t, "the clocks agree", func() bool {
				return clock.measure(t.Context()) == nil && clock.Problem() == "" && right()
			})
			clock.tell()
			var said []string
			for _, e := range logged.AllEntries() {
				said = append(said, e.Level.String())
			}
			want := ""
			if c.problem != "" {
				want = "warning info"
			}
			if got := strings.Join(said, " "); got != want {
				t.Errorf("logged %q, want %q", got, want)
			}
		})
	}
}
