package main

import (
	"cmp"
	"database/sql"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

const (
	// overloadFactor is how many times as much is asked for as the service can do.
	overloadFactor = 10
	// overloadPatience bounds a refusal, and a read beside the overload, but for one in a
	// hundred; overloadRecovery is when all is as before.
	overloadPatience = 2 * time.Second
	overloadRecovery = 5 * time.Second
	// overloadMost is what the service may take in memory, in MB (docs/operations.md).
	overloadMost = 500
	// overloadAccounts submit.
	overloadAccounts = 16
)

// Ten times as many submissions come as the log takes: a slow disk stands for a log that is
// at its end, so that one machine can send as many. The service takes about as many as
// before, refuses the others quickly, serves reads, and is as before soon after. What it
// accepted is there. For make torture; alone by
// go test ./cmd/humanqa -run TestOverload -v -args -torture
func TestOverload(t *testing.T) {
	if !*torture {
		t.Skip("it takes a minute of all processors: -args -torture")
	}
	p := newProgram(t)
	s := p.spawn()
	o := &overload{program: p}
	for range overloadAccounts {
		_, key := p.newAccount(1_000_000)
		o.keys = append(o.keys, key)
	}
	db, err := sql.Open("postgres", p.dsn())
	must.NoError(t, err)
	defer func() { _ = db.Close() }() // nothing is pending on it
	_, err = db.ExecContext(t.Context(), `
		CREATE FUNCTION slow_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.004); RETURN NEW; END $$;
		CREATE TRIGGER slow_disk BEFORE INSERT ON eventlog.events FOR EACH ROW EXECUTE FUNCTION slow_disk()`)
	must.NoError(t, err)

	before := o.run(400, 10*time.Second)
	capacity := float64(len(before.took[http.StatusCreated])) / before.lasted.Seconds()
	t.Logf("as much as it can: %s", before)
	during := o.run(int(capacity*overloadFactor), 20*time.Second)
	t.Logf("%d times as much:  %s", overloadFactor, during)
	accepted := float64(len(during.took[http.StatusCreated])) / during.lasted.Seconds()
	if accepted < 0.7*capacity {
		t.Errorf("%.0f a second are accepted, of %.0f before", accepted, capacity)
	}
	if q := quantile(during.took[http.StatusServiceUnavailable], 0.99); q > overloadPatience {
		t.Errorf("a refusal takes %s", q)
	}
	if q := quantile(during.reads, 0.99); q > overloadPatience {
		t.Errorf("a read takes %s", q)
	}
	if len(during.took[http.StatusServiceUnavailable]) == 0 || len(during.reads) == 0 {
		t.Error("it was no overload, or nothing was read")
	}
	began := time.Now()
	eventually.Within(t, eventually.Patience, func() error {
		at := time.Now()
		if r, err := p.try("POST", "/v1/jobs", o.keys[0], submission(1)); err != nil || r.status != http.StatusCreated || time.Since(at) > time.Second {
			return fmt.Errorf("not as before after %s: %d %w", time.Since(at), r.status, err)
		}
		return nil
	})
	recovered := time.Since(began)
	most := s.peak()
	t.Logf("as before after %s; at most %d MB", recovered, most)
	if recovered > overloadRecovery || most > overloadMost {
		t.Errorf("more than %s, or than %d MB", overloadRecovery, overloadMost)
	}
	_, err = db.ExecContext(t.Context(), `DROP FUNCTION slow_disk CASCADE`)
	must.NoError(t, err)
	for _, id := range o.accepted {
		if r := p.call(http.StatusOK, "GET", "/v1/jobs/"+id.job, id.key, nil); r.text("id") != id.job {
			t.Errorf("job %s is lost: %s", id.job, r.body)
		}
	}
	if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
		t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
	s.stop()
}

// overload sends submissions at a fixed rate, whatever becomes of those before.
type overload struct {
	*program
	keys []string

	mu       sync.Mutex
	accepted []acceptedJob
}

type acceptedJob struct{ key, job string }

// overloadRun is what came of the submissions and the reads of one run.
type overloadRun struct {
	asked  int
	lasted time.Duration           // until the last answer
	took   map[int][]time.Duration // by status
	reads  []time.Duration
}

func (r overloadRun) String() string {
	text := fmt.Sprintf("%d a second asked for", int(float64(r.asked)/r.lasted.Seconds()))
	for _, status := range []int{http.StatusCreated, http.StatusServiceUnavailable} {
		text += fmt.Sprintf(", %d: %d (p50 %s, p99 %s)", status, len(r.took[status]),
			quantile(r.took[status], 0.5).Round(time.Millisecond), quantile(r.took[status], 0.99).Round(time.Millisecond))
	}
	return text + fmt.Sprintf("; %d reads (p50 %s, p99 %s)", len(r.reads),
		quantile(r.reads, 0.5).Round(time.Millisecond), quantile(r.reads, 0.99).Round(time.Millisecond))
}

func (o *overload) run(perSecond int, length time.Duration) overloadRun {
	var (
		out   = overloadRun{took: map[int][]time.Duration{}}
		sent  sync.WaitGroup
		over  atomic.Bool
		began = time.Now()
	)
	sent.Go(func() {
		for !over.Load() {
			at := time.Now()
			o.call(http.StatusOK, "GET", "/v1/jobs?limit=10", o.keys[0], nil)
			out.reads = append(out.reads, time.Since(at))
			time.Sleep(50 * time.Millisecond) // twenty a second
		}
	})
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	var all sync.WaitGroup
	for ; time.Since(began) < length; out.asked++ {
		<-tick.C
		key := o.keys[out.asked%len(o.keys)]
		all.Go(func() {
			at := time.Now()
			r, err := o.try("POST", "/v1/jobs", key, submission(1), "Idempotency-Key", uuid.NewString())
			took := time.Since(at)
			o.mu.Lock()
			defer o.mu.Unlock()
			switch {
			case err != nil:
				o.t.Errorf("a submission has no answer: %v", err)
			case r.status == http.StatusCreated:
				o.accepted = append(o.accepted, acceptedJob{key, r.text("jobId")})
			case r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "":
				o.t.Errorf("a submission is answered %d %v %s", r.status, r.header, r.body)
			}
			out.took[r.status] = append(out.took[r.status], took)
		})
	}
	all.Wait()
	out.lasted = time.Since(began)
	over.Store(true)
	sent.Wait()
	return out
}

func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Clone(of)
	slices.SortFunc(sorted, cmp.Compare)
	return sorted[int(q*float64(len(sorted)-1))]
}
