package pgclock

import (
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/lib/pq"
	"github.com/sirupsen/logrus/hooks/test"

	"humanqa/internal/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

func TestTheTimeIsPostgresWhateverTheMachineSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off     time.Duration // of the machine's clock
		problem string
	}{
		"they agree":                  {0, ""},
		"a second is tolerated":       {time.Second, ""},
		"the machine's is behind":     {-10 * time.Second, "Postgres' clock is 10s ahead of this machine's"},
		"the machine's is far ahead":  {time.Hour, "Postgres' clock is 1h0m0s behind this machine's"},
		"the machine's is just ahead": {3 * time.Second, "Postgres' clock is 3s behind this machine's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var off atomic.Int64
			off.Store(int64(c.off))
			log, logged := test.NewNullLogger()
			clock, err := Open(t.Context(), pgtest.New(t), log, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
			if err != nil {
				t.Fatal(err)
			}
			if apart := time.Since(clock.Now()).Abs(); apart > time.Second { // Postgres' is this machine's, in truth
				t.Errorf("the time is %s off", apart)
			}
			if got := clock.Problem(); got != c.problem {
				t.Errorf("the problem is %q, want %q", got, c.problem)
			}
			off.Store(0) // somebody sets it right
			if err := clock.measure(t.Context()); err != nil {
				t.Fatal(err)
			}
			clock.tell()
			if got := clock.Problem(); got != "" || time.Since(clock.Now()).Abs() > time.Second {
				t.Errorf("still %q", got)
			}
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
