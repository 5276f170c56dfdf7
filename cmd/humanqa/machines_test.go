package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

var machines = flag.Bool("machines", false, "have TestFourProcessesLoseEachPartInTurn make network namespaces; it needs root and ip(8)")

// site is an installation on several machines, as deploy/compose/cluster.yaml has it: two
// processes of the API behind a proxy, two with the work, a Postgres, and the log in a process
// of its own.
type site struct {
	t        *testing.T
	postgres *ownPostgres
	log      *machineProgram
	apis     []*machineProgram
	workers  []*machineProgram
	front    *program // by the proxy
	tally    *tally
	load     *load
}

// Four processes share the work, each in a network namespace of its own. They are restarted in
// turn, and no request fails. Then each part is lost, and everything that was acknowledged is
// there in the end:
//
//	go test ./cmd/humanqa -v -timeout 20m -run TestFourProcessesLoseEachPartInTurn -args -machines
func TestFourProcessesLoseEachPartInTurn(t *testing.T) {
	if !*machines {
		t.Skip("it makes network namespaces, which needs root: give -machines")
	}
	s := newSite(t)
	t.Logf("the API is at %s and %s, the workers at %s and %s", s.apis[0].machine.address, s.apis[1].machine.address,
		s.workers[0].machine.address, s.workers[1].machine.address)
	s.load = newLoad(s.front, rand.New(rand.NewPCG(1, 2)), plenty...)
	s.load.start()
	s.phase("nothing is touched", func() {})
	for _, p := range append(s.apis, s.workers...) {
		after := s.phase(p.machine.address+" is restarted in order", func() { p.now.stop(); p.start() })
		if after.failures > 0 {
			t.Errorf("a restart in order failed %d requests", after.failures)
		}
	}
	for _, p := range append(s.apis, s.workers...) { // one of the workers has the leases
		s.phase(p.machine.address+" is killed", func() { p.now.kill(); s.goesOn(); p.start() })
	}
	s.phase("the link of an API process is pulled", func() {
		s.apis[1].machine.plug("down")
		s.goesOn()
		s.apis[1].machine.plug("up")
	})
	s.phase("Postgres is restarted", s.postgres.restart)
	s.phase("the log's node is restarted", func() { s.log.now.stop(); s.log.start() })
	s.load.stop()
	s.load.check()
	eventually.Within(t, eventually.Patience, func() error { // every debit has its job, or is refunded within a minute
		stdout, stderr, err := s.front.tryCLI("fsck")
		if err != nil {
			return fmt.Errorf("fsck: %w\n%s%s", err, stdout, stderr)
		}
		t.Logf("fsck: %s", stdout)
		return nil
	})
	t.Logf("%d jobs acknowledged, %d cancelled, %d completed", len(s.load.jobs), len(s.load.cancelled), len(s.load.completed))
	if len(s.load.jobs) == 0 || len(s.load.completed) == 0 {
		t.Error("the load did nothing")
	}
	for _, p := range append(append(s.apis, s.workers...), s.log) { // while their Postgres is there
		p.now.stop()
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	n := newNetwork(t)
	s := &site{t: t, postgres: newOwnPostgres(t, n.machine())}
	proxy := n.prefix + "1:8080"
	evidence := filepath.Join(t.TempDir(), "evidence") // the store that all of them reach
	shared := []string{
		"HUMANQA_DATABASE_URL=" + s.postgres.dsn(), "HUMANQA_BASE_URL=http://" + proxy, "HUMANQA_EVIDENCE_URL=file://" + evidence,
	}
	own := n.machine()
	s.log = own.on("9090", append(shared, "HUMANQA_ROLES=policy", "HUMANQA_EVENTSTORE_LISTEN="+own.address+":2113")...)
	s.log.start()
	eventually.True(t, "the log's process is up", func() bool { return s.log.logURL() != "" })
	shared = append(shared, "HUMANQA_EVENTSTORE_URL="+s.log.logURL(),
		"HUMANQA_MASTER_KEY_FILE="+filepath.Join(s.log.dir, "master-keyset.json"))
	for range 2 {
		s.apis = append(s.apis, n.machine().on("8080", append(shared, "HUMANQA_ROLES=api", "HUMANQA_STOP_DELAY=3")...))
		s.workers = append(s.workers, n.machine().on("9090", append(shared, "HUMANQA_ROLES=projector,webhooks,policy")...))
	}
	for _, p := range append(s.apis, s.workers...) {
		p.start()
	}
	newBalancer(t, proxy, s.apis[0].url(""), s.apis[1].url(""))
	s.tally = &tally{next: &http.Transport{MaxIdleConnsPerHost: 32}, pace: 10 * time.Millisecond}
	s.tally.begin()
	front := *s.apis[0].program // its settings, for the operator's commands
	front.addr, front.client = proxy, &http.Client{Timeout: 30 * time.Second, Transport: s.tally}
	s.front = &front
	s.whole()
	return s
}

var (
	bannerURL      = regexp.MustCompile(`esdb://(\S+\?tlsCaFile=\S+)`)
	bannerPassword = regexp.MustCompile(`user (\S+), password (\S+)`)
)

// logURL is the address of the log, with the password that the first start prints.
func (m *machineProgram) logURL() string {
	told, err := os.ReadFile(m.banner)
	must.NoError(m.t, err)
	url, password := bannerURL.FindSubmatch(told), bannerPassword.FindSubmatch(told)
	if url == nil || password == nil {
		return ""
	}
	return fmt.Sprintf("esdb://%s:%s@%s", password[1], password[2], url[1])
}

// whole waits until every process is ready, and gives the time that took.
func (s *site) whole() time.Duration {
	s.t.Helper()
	began := time.Now()
	for _, p := range append(append([]*machineProgram{s.log}, s.apis...), s.workers...) {
		eventually.Within(s.t, eventually.Patience, func() error {
			if !p.now.Running() {
				s.t.Fatalf("%s ended: %v\n%s", p.machine.address, p.now.Err(), p.now.Said())
			}
			if !p.isReady() {
				return fmt.Errorf("%s is not ready", p.machine.address)
			}
			return nil
		})
	}
	return time.Since(began)
}

// enough successes show that the load goes on. They take some seconds.
const enough = 500

// goesOn waits until enough requests succeeded since now.
func (s *site) goesOn() {
	s.t.Helper()
	succeeded := func() int { c := s.tally.sofar(); return c.requests - c.failures }
	until := succeeded() + enough
	eventually.Within(s.t, 5*time.Minute, func() error { // the machine may be very busy
		if n := succeeded(); n < until {
			return fmt.Errorf("the load stands still: %d requests succeeded, want %d", n, until)
		}
		return nil
	})
}

// phase tells of the requests during a blow, until every process is ready and the load goes on.
func (s *site) phase(what string, blow func()) counts {
	s.t.Helper()
	s.tally.begin()
	began := time.Now()
	blow()
	s.whole()
	well := time.Since(began)
	s.goesOn()
	c := s.tally.sofar()
	s.t.Logf("%-42s all is well after %6s: %s", what, well.Round(10*time.Millisecond), c)
	return c
}
