package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/faultproxy"
	"humanqa/internal/testing/history"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/testing/process"
)

var (
	faultsOperations = flag.Int("faults.operations", 0, "break the parts' connections until clients have made so many calls, instead of for some rounds")
	faultsHold       = flag.Duration("faults.hold", 100*time.Second, "how long a fault lasts, now and then, that is to be longer than a handler's time")
)

// part is a proxy between two parts of the service's world.
type part struct {
	*faultproxy.Proxy
	name    string
	seen    *program     // the service, as its clients see it; nil between other parts
	changes atomic.Int64 // of the mode
	broken  atomic.Bool
}

func (p *part) set(mode faultproxy.Mode) {
	p.changes.Add(1)
	p.broken.Store(mode != faultproxy.Healthy)
	p.Set(mode)
}

// broken is two services on one log and database, with a proxy between every two parts.
type broken struct {
	t        *testing.T
	dice     *rand.Rand
	direct   *program // the first service, past all proxies
	services []*instance
	parts    []*part
	record   *recorder
	hooks    string // the receiver's URL, through its proxy
	heard    *heard
	eras     int
	ledgers  map[string]string // ids of accounts, by their name in the history
	judged   sync.Once
}

// Every two parts are cut off from each other in every way, again and again, while clients
// and checkers work over two services on one log and database. Every answer must be one of a
// job and a ledger on which the calls act one at a time; and in the end what was
// acknowledged is there, nothing is charged twice, and each webhook has arrived.
func TestFaultsBetweenTheParts(t *testing.T) {
	t.Parallel()
	seed, rounds := tortureOf(t, 2)
	b := newBroken(t, rand.New(rand.NewPCG(seed, 3)))
	began := time.Now()
	defer b.judge(seed, began) // a failure of the load must not hide one of the history
	more := func(round int) bool {
		if *faultsOperations > 0 {
			return b.record.history.Calls() < *faultsOperations
		}
		return round < rounds
	}
	for round := 0; more(round) && !t.Failed(); {
		round = b.era(round, more)
	}
	if stdout, stderr, err := b.direct.tryCLI("fsck"); err != nil {
		t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
	b.judge(seed, began)
	for _, s := range b.services {
		s.stop()
	}
}

// judge checks the order of all calls, once, and says what was done. The drawing of a fault
// outlives the test.
func (b *broken) judge(seed uint64, began time.Time) {
	b.t.Helper()
	b.judged.Do(func() {
		folder := filepath.Join(os.TempDir(), fmt.Sprintf("humanqa-history-%d", seed))
		answeredLate := late(b.services...)
		faults := b.record.history.Check(b.t, folder, func(request string) bool { return answeredLate[request] })
		for _, f := range faults {
			stream := "job-" + f.Of
			if id, is := b.ledgers[f.Of]; is {
				stream = "credits-" + id
			}
			stdout, stderr, err := b.direct.tryCLI("replay", stream)
			b.t.Logf("%s in the log: %v\n%s%s", f.Of, err, stdout, stderr)
		}
		b.tell(time.Since(began), len(answeredLate))
	})
}

func newBroken(t *testing.T, dice *rand.Rand) *broken {
	t.Helper()
	b := &broken{t: t, dice: dice, ledgers: map[string]string{}}
	x := newStrangers(t)
	b.heard = hear(t, x)
	log := process.Address(t)
	first := newProgram(t, append(x.settings(), "HUMANQA_CLOSE_EVERY=50", "HUMANQA_EVENTSTORE_LISTEN_INSECURE="+log)...)
	second := newProgram(t, append(x.settings(), "HUMANQA_CLOSE_EVERY=50", "HUMANQA_DATABASE_URL="+first.dsn(),
		"HUMANQA_MASTER_KEY_FILE="+filepath.Join(first.dir, "master-keyset.json"))...)
	beyond := b.between("the second service and the log", "tcp", log)
	b.direct = first
	var clients []*part
	for i, p := range []*program{first, second} {
		name := []string{"the first service", "the second service"}[i]
		served := *p
		served.environ = append(slices.Clone(p.environ), "HUMANQA_DATABASE_URL="+pgtest.Through(t, p.dsn(), func(network, address string) string {
			return b.between(name+" and Postgres", network, address).Addr()
		}))
		if i == 1 {
			served.environ = append(served.environ, "HUMANQA_EVENTSTORE_URL=esdb://"+beyond.Addr()+"?tls=false")
		}
		b.services = append(b.services, served.start())
		front := b.between("clients and "+name, "tcp", p.addr)
		front.seen = new(program)
		*front.seen = *p
		front.seen.addr = front.Addr()
		front.seen.client = &http.Client{Transport: p.client.Transport} // its limit is each call's own
		clients = append(clients, front)
	}
	hooks, err := url.Parse(x.URL)
	must.NoError(t, err)
	b.hooks = "https://" + b.between("the services and the receiver", "tcp", hooks.Host).Addr()
	b.record = newRecorder(t, rand.New(rand.NewPCG(dice.Uint64(), 5)), clients...)
	return b
}

// between puts a proxy before an address.
func (b *broken) between(name, network, address string) *part {
	p := &part{Proxy: faultproxy.New(b.t, network, address, rand.New(rand.NewPCG(b.dice.Uint64(), 4))), name: name}
	b.parts = append(b.parts, p)
	return p
}

// eraRounds bounds the history of an account: each era has accounts of its own.
const eraRounds = 8

// era is some rounds of faults under the load of new accounts.
func (b *broken) era(round int, more func(round int) bool) int {
	b.eras++
	grants := []int{100_000, 100_000, 60}
	if *torture {
		grants[2] = 500
	}
	load := newLoad(b.direct, b.dice, grants...)
	load.receivers(b.hooks, []string{"/ok"})
	load.attempt, load.races, load.name = b.record.attempt, true, fmt.Sprintf("era%d", b.eras)
	for i, key := range load.accounts {
		name := fmt.Sprintf("account %d of era %d", i+1, b.eras)
		b.record.know(key, name)
		b.record.history.Open(name, grants[i])
		b.ledgers[name] = load.ids[i]
	}
	for i, key := range load.checkers {
		b.record.know(key, fmt.Sprintf("checker %d of era %d", i+1, b.eras))
	}
	load.start()
	for n := 0; n < eraRounds && more(round); n++ {
		round++
		b.round(round)
	}
	for _, p := range b.parts {
		p.set(faultproxy.Healthy)
	}
	for _, s := range b.services {
		s.waitReady()
	}
	eventually.True(b.t, "a test is claimed and completed again", func() bool {
		return b.record.did(history.Claim, history.Done) && b.record.did(history.Complete, history.Done)
	})
	load.stop()
	load.attempt = b.direct.try
	load.check()
	b.settle(load)
	b.webhooks(load)
	return round
}

// settle tells the history what became of the jobs and the charges.
func (b *broken) settle(load *load) {
	b.t.Helper()
	for id, status := range load.ended {
		b.record.history.End(id, status)
	}
	for name, id := range b.ledgers {
		if !slices.Contains(load.ids, id) {
			continue
		}
		stdout, stderr, err := b.direct.tryCLI("replay", "credits-"+id)
		if err != nil {
			b.t.Fatalf("replay the ledger of %s: %v\n%s", name, err, stderr)
		}
		if strings.Contains(stdout, "job_never_created") {
			b.record.history.GaveBack(name)
		}
	}
}

// round breaks one to three connections for a while, and mends them.
func (b *broken) round(round int) {
	lasts := time.Duration(300+b.dice.IntN(1200)) * time.Millisecond
	victims := slices.Clone(b.parts)
	b.dice.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	victims = victims[:1+b.dice.IntN(3)]
	if *torture && b.dice.IntN(15) == 0 { // longer than any time limit of the service
		victims, lasts = victims[:1], *faultsHold
	}
	for _, v := range victims {
		mode := faultproxy.Faults()[b.dice.IntN(len(faultproxy.Faults()))]
		b.t.Logf("round %d: %s between %s, for %s", round, mode, v.name, lasts)
		v.set(mode)
		if mode == faultproxy.Refuse || mode == faultproxy.Hang || mode == faultproxy.Reorder {
			v.Sever() // so that new connections are needed
		}
	}
	time.Sleep(lasts) // the load runs under the fault
	for _, v := range victims {
		v.set(faultproxy.Healthy)
	}
	time.Sleep(time.Duration(b.dice.IntN(700)) * time.Millisecond) // and without one
}

// webhooks waits until the receiver has heard of each acknowledged job. A webhook that was
// disabled after its fourth attempt is enabled, and sends what it held.
func (b *broken) webhooks(load *load) {
	b.t.Helper()
	for _, key := range load.accounts {
		for _, project := range load.projects[key] {
			at := "/v1/projects/" + project + "/webhook/"
			b.direct.call(http.StatusOK, "POST", at+"enable", key, nil)
			b.direct.call(http.StatusAccepted, "POST", at+"replay", key, map[string]any{"since": "2020-01-01"})
		}
	}
	limit := eventually.Patience + 75*time.Second // its attempts are up to 71 s apart
	eventually.Within(b.t, limit, func() error {
		if missing := b.heard.missing(load.jobs); len(missing) > 0 {
			return fmt.Errorf("the receiver has not heard of %d of %d jobs, such as %s", len(missing), len(load.jobs), missing[0])
		}
		return nil
	})
}

// heard is the jobs of which the receiver has heard.
type heard struct {
	mu   sync.Mutex
	jobs map[string]bool
}

func hear(t *testing.T, x *strangers) *heard {
	h := &heard{jobs: map[string]bool{}}
	go func() {
		for {
			select {
			case id := <-x.arrived:
				h.mu.Lock()
				h.jobs[id] = true
				h.mu.Unlock()
			case <-t.Context().Done():
				return
			}
		}
	}()
	return h
}

func (h *heard) missing(jobs map[string]string) (ids []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range jobs {
		if !h.jobs[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// tell says what was done.
func (b *broken) tell(took time.Duration, late int) {
	b.t.Helper()
	faults := map[string]int{}
	for _, p := range b.parts {
		b.t.Logf("between %s: %v", p.name, p.Counts())
		for what, n := range p.Counts() {
			faults[what] += n
		}
	}
	r := b.record
	b.t.Logf("%d calls in %s over %d eras; %d answered before the read models; longest answer over a healthy connection %s (%s); faults %v",
		r.history.Calls(), took.Round(time.Second), b.eras, late, r.longest.Round(time.Millisecond), r.slowest, faults)
	for _, what := range slices.Sorted(maps.Keys(r.answers)) {
		b.t.Logf("%6d  %s", r.answers[what], strings.TrimSpace(what))
	}
}
