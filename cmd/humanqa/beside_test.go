package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

var (
	olderCommit = flag.String("older.commit", "", "have TestAnOlderBinaryBesideANewerOne build the older binary of this commit")
	newerCommit = flag.String("newer.commit", "", "and the newer one of this, or \"future\"; without it the newer one is this very binary")
	olderFor    = flag.Duration("older.for", time.Minute, "how long both run under load")
)

// future stands for a version after the older commit: job.cancelled has another name in it,
// and every read model a higher version, as a release with a new type has.
const future = "future"

// A service of an older commit goes on under load while a newer one starts beside it, on the
// same database and log, and for a minute after that. Then the newer one takes the place of
// both. It needs the history in git:
//
//	go test ./cmd/humanqa -v -timeout 20m -run TestAnOlderBinaryBesideANewerOne -args -older.commit HEAD -newer.commit future
//	go test ./cmd/humanqa -v -timeout 20m -run TestAnOlderBinaryBesideANewerOne -args -older.commit c32fafe2 -newer.commit 16b04f63
//
// Where the newer one writes a known type in a newer version, the older one's feed is 503
// instead, with Retry-After (docs/upgrades.md): -older.commit 16b04f63.
func TestAnOlderBinaryBesideANewerOne(t *testing.T) {
	t.Parallel()
	if *olderCommit == "" {
		t.Skip("it builds a commit of the history: give one with -older.commit")
	}
	log := process.Address(t)
	older := &release{newEmbedded(t, "HUMANQA_EVENTSTORE_LISTEN_INSECURE="+log), builtOf(t, *olderCommit, func(string) {})}
	first := older.launch()
	first.waitReady()
	newer := &release{program: newProgram(t, "HUMANQA_DATABASE_URL="+older.dsn(), "HUMANQA_EVENTSTORE_URL=esdb://"+log+"?tls=false",
		"HUMANQA_MASTER_KEY_FILE="+filepath.Join(older.dir, "master-keyset.json"))}
	if *newerCommit != "" {
		commit, change := *newerCommit, func(string) {}
		if commit == future {
			commit, change = *olderCommit, func(source string) { becomeFuture(t, source) }
		}
		newer.binary = builtOf(t, commit, change)
	}
	for _, one := range []*release{older, newer} { // each answers as a document of its own says
		one.client = &http.Client{Timeout: eventually.Patience}
	}
	b := &beside{t: t, quit: make(chan struct{}), answers: map[string]int{}, refusals: map[string][]string{}}
	for range 3 {
		var made struct{ APIKey string }
		older.cli(&made, "account", "create", "--name", "Acme", "--credits", "1000000")
		b.keys = append(b.keys, made.APIKey)
	}
	b.project = older.call(http.StatusCreated, "POST", "/v1/projects", b.keys[ofOlder],
		map[string]any{"name": "Shop", "webhookUrl": "https://hooks.example.com/in"}).text("projectId")

	b.start(older.program, "older", ofOlder, ofBoth)
	eventually.True(t, "the older one serves", func() bool { return len(b.submitted()) > 20 })
	began := time.Now()
	second := newer.launch()
	second.waitReady()
	b.ready.Store(true)
	t.Logf("the newer one was ready after %s", time.Since(began).Round(time.Millisecond))
	b.start(newer.program, "newer", ofNewer, ofBoth)
	newer.unknownToOlder(b.keys[ofOlder], b.submitted())
	time.Sleep(*olderFor) // the load is the point
	close(b.quit)
	b.running.Wait()
	b.tell()

	for i, key := range b.keys {
		page := older.feedTo(t, key)
		t.Logf("the older one's feed of the account %s: %+v", whoServed[i], page)
		switch {
		case page.status == http.StatusServiceUnavailable && strings.Contains(page.refused, "upgrade"):
		case page.status != http.StatusOK || page.events < b.acknowledged[i]:
			t.Errorf("it is not whole, of %d jobs", b.acknowledged[i])
		case *newerCommit == future && i == ofOlder && page.passedOver != calledOff:
			t.Errorf("it passed over %d events, want %d", page.passedOver, calledOff)
		}
	}
	ready, err := older.try("GET", "/readyz", "", nil)
	must.NoError(t, err)
	t.Logf("/readyz of the older one: %d %s", ready.status, ready.body)
	if ready.status != http.StatusOK || !strings.Contains(string(ready.body), "newer version") {
		t.Error("the older one does not say that it is one")
	}

	second.stop()
	first.stop()
	upgraded := &release{older.program, newer.binary}
	last := upgraded.launch()
	last.waitReady()
	for i, key := range b.keys {
		page := upgraded.feedTo(t, key)
		if page.status != http.StatusOK || page.passedOver != 0 || page.events < b.acknowledged[i] {
			t.Errorf("after the upgrade the feed of the account %s is %+v of %d jobs", whoServed[i], page, b.acknowledged[i])
		}
	}
	eventually.Within(t, eventually.Patience, func() error { // no webhook was passed over
		page := upgraded.call(http.StatusOK, "GET", "/v1/projects/"+b.project+"/deliveries?limit=100&event=job.cancelled", b.keys[ofOlder], nil)
		if n := len(page.list("deliveries")); n != calledOff {
			return fmt.Errorf("%d of %d webhooks of cancelled tests", n, calledOff)
		}
		return nil
	})
	eventually.Within(t, eventually.Patience, func() error { // every debit has its job, or is refunded
		check := upgraded.command("fsck")
		check.Env = upgraded.environ
		out, err := check.CombinedOutput()
		if err != nil {
			return fmt.Errorf("fsck: %w\n%s", err, out)
		}
		t.Logf("fsck: %s", out)
		return nil
	})
	last.stop()
}

// The accounts, by the service that the account's clients use.
const (
	ofOlder = iota
	ofNewer
	ofBoth
)

var whoServed = []string{"of the older one", "of the newer one", "of both"}

// builtOf builds the program of a commit, with a change of its source.
func builtOf(t *testing.T, commit string, change func(source string)) (binary string) {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	must.NoError(t, os.Mkdir(source, 0o700))
	run := func(command string) {
		t.Helper()
		words := strings.Fields(command)
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	run("git -C ../.. archive --format=tar -o " + dir + "/source.tar " + commit)
	run("tar -C " + source + " -xf " + dir + "/source.tar")
	change(source)
	run("go -C " + source + " build -buildvcs=false -o " + dir + "/humanqa ./cmd/humanqa")
	return filepath.Join(dir, "humanqa")
}

var (
	versionOf = regexp.MustCompile(`Version\(\) int\s+\{ return [0-9]`)
	layoutOf  = regexp.MustCompile(`const layout = [0-9]`)
)

// becomeFuture changes a source as the constant says.
func becomeFuture(t *testing.T, source string) {
	t.Helper()
	changed := 0
	edit := func(file string, how func(string) string) {
		t.Helper()
		was, err := os.ReadFile(file)
		must.NoError(t, err)
		if is := how(string(was)); is != string(was) {
			changed++
			must.NoError(t, os.WriteFile(file, []byte(is), 0o600))
		}
	}
	edit(filepath.Join(source, "domain/job/cancel.go"), func(text string) string {
		return strings.Replace(text, `"job.cancelled"`, `"job.called_off"`, 1)
	})
	models, err := filepath.Glob(filepath.Join(source, "projections/*/*.go"))
	must.NoError(t, err)
	for _, file := range models {
		edit(file, func(text string) string {
			return layoutOf.ReplaceAllString(versionOf.ReplaceAllString(text, "${0}0"), "${0}0")
		})
	}
	if changed < 15 {
		t.Fatalf("only %d files of the source were changed", changed)
	}
}

// release is a program that another binary runs; without one it is this very binary.
type release struct {
	*program
	binary string
}

func (r *release) command(args ...string) *exec.Cmd {
	if r.binary == "" {
		return r.program.command(context.Background(), args...)
	}
	return exec.CommandContext(context.Background(), r.binary, args...)
}

func (r *release) launch() *instance { return r.launchAs(r.command("serve")) }

func (r *release) cli(out any, args ...string) {
	r.t.Helper()
	cmd := r.command(append([]string{"--json"}, args...)...)
	cmd.Env = r.environ
	printed, err := cmd.Output()
	must.NoError(r.t, err)
	if out != nil {
		must.NoError(r.t, json.Unmarshal(printed, out))
	}
}

// beside is load on two services, and what they answered.
type beside struct {
	t       *testing.T
	keys    []string // of the accounts
	project string   // of the account of the older, with a webhook
	quit    chan struct{}
	running sync.WaitGroup
	ready   atomic.Bool // both are: nothing is 503 any more, but what needs the newer one

	mu           sync.Mutex
	jobs         []string // of the account of the older
	acknowledged [3]int
	answers      map[string]int      // by side, request and status
	refusals     map[string][]string // the words of 503s
}

// start has clients submit to the service and read from it, for accounts in turn.
func (b *beside) start(p *program, side string, accounts ...int) {
	for range 2 {
		b.running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-b.quit:
					return
				default:
				}
				b.turn(p, side, accounts[n%len(accounts)])
			}
		})
	}
}

func (b *beside) turn(p *program, side string, account int) {
	key := b.keys[account]
	job := submission(2)
	if account == ofOlder {
		job = submission(2, "projectId", b.project)
	}
	if r := b.ask(p, side, "POST", "/v1/jobs", key, job); r.status == http.StatusCreated {
		job := r.text("jobId")
		b.mu.Lock()
		b.acknowledged[account]++
		if account == ofOlder {
			b.jobs = append(b.jobs, job)
		}
		b.mu.Unlock()
		b.ask(p, side, "GET", "/v1/jobs/"+job, key, nil)
	}
	for _, path := range []string{"/v1/jobs?limit=20", "/v1/credits", "/v1/events?limit=20"} {
		b.ask(p, side, "GET", path, key, nil)
	}
}

// ask counts the answer. A 5xx has to be a 503 that says when to come again.
func (b *beside) ask(p *program, side, method, path, key string, body any) reply {
	ready := b.ready.Load()
	r, err := p.try(method, path, key, body)
	place, _, _ := strings.Cut(path, "?")
	if strings.HasPrefix(place, "/v1/jobs/") {
		place = "/v1/jobs/ID"
	}
	what := fmt.Sprintf("%s %s %s %d", side, method, place, r.status)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[what]++
	told := r.status == http.StatusServiceUnavailable && r.header.Get("Retry-After") != ""
	if err != nil || r.status >= 500 && !told || told && ready && !strings.Contains(r.text("hint"), "upgrade") {
		b.t.Errorf("%s: %v %s", what, err, r.body)
	}
	if r.status >= 500 {
		why := r.text("error") + ": " + r.text("hint")
		if !slices.Contains(b.refusals[what], why) {
			b.refusals[what] = append(b.refusals[what], why)
		}
	}
	return r
}

func (b *beside) tell() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, what := range slices.Sorted(maps.Keys(b.answers)) {
		b.t.Logf("%6d  %s  %s", b.answers[what], what, strings.Join(b.refusals[what], "; "))
	}
}

// submitted gives the jobs of the account that the older service has alone.
func (b *beside) submitted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.jobs)
}

// calledOff are the jobs that the newer service cancels.
const calledOff = 5

// unknownToOlder writes events of types that an older binary may not know.
func (r *release) unknownToOlder(key string, jobs []string) {
	r.t.Helper()
	r.call(http.StatusOK, "PATCH", "/v1/evidence", key, map[string]any{"keepEvidenceDays": 30})
	r.cli(nil, "evidence", "hold", "--job", jobs[0], "--by", "olga", "--reason", "a complaint")
	r.cli(nil, "eventstore", "restored", "--reason", "the volume was put back")
	for _, id := range jobs[:calledOff] {
		r.call(http.StatusOK, "POST", "/v1/jobs/"+id+"/cancel", key, nil)
	}
}

// readFeed is what the feed gave from its start to its end, or to its first refusal.
type readFeed struct {
	events, passedOver, status int
	refused                    string
}

func (p *program) feedTo(t *testing.T, key string) (f readFeed) {
	t.Helper()
	for after := ""; ; {
		r, err := p.try("GET", "/v1/events?limit=100&after="+after, key, nil)
		must.NoError(t, err)
		f.status = r.status
		if r.status != http.StatusOK {
			f.refused = r.text("error") + ": " + r.text("hint")
			return f
		}
		f.events += len(r.list("events"))
		f.passedOver += r.number("passedOver")
		more, _ := r.field("hasMore").(bool)
		if !more {
			return f
		}
		after = r.text("next")
	}
}
