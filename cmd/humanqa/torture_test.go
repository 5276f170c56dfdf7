package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

var (
	torture     = flag.Bool("torture", false, "torture for long instead of briefly")
	tortureSeed = flag.Uint64("torture.seed", 0, "repeat the torture of this seed")
)

// The service, its Postgres, or both at once are killed again and again while
// clients submit and cancel and checkers work, and most receivers of webhooks are
// hostile; ledgers are closed every fifty events. Whatever was acknowledged must
// be there in the end, nothing may be charged twice or without a job, and the
// read models must be the fold of the log.
func TestTorture(t *testing.T) {
	t.Parallel()
	seed, rounds := *tortureSeed, 4
	if seed == 0 {
		seed = rand.Uint64()
	}
	if *torture {
		rounds = 60
	}
	t.Logf("seed %d: repeat with -args -torture.seed %d", seed, seed)
	dice := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable on purpose

	x := newStrangers(t)
	p := newEmbedded(t, append(x.settings(), "HUMANQA_CLOSE_EVERY=50")...)
	s := p.start()
	load := newLoad(p, dice)
	load.receivers(x)
	load.start()
	for round := range rounds {
		time.Sleep(time.Duration(300+dice.IntN(1500)) * time.Millisecond) // the load runs; when the blow falls is the point
		switch victim := dice.IntN(4); victim {
		case 0, 1:
			t.Logf("round %d: the service is killed", round+1)
			s.kill()
			s = p.start()
		case 2:
			t.Logf("round %d: Postgres is killed", round+1)
			p.killPostgres()
			s.waitReady(time.Minute)
		case 3:
			t.Logf("round %d: both are killed", round+1)
			p.killPostgres()
			s.kill()
			s = p.start()
		}
	}
	// A few rounds on a busy machine may have ended before anybody asked.
	eventually.True(t, "a question was asked under load", load.hasAsked)
	load.stop()
	load.check()
	// Every debit has its job, or is refunded within a minute.
	eventually.Within(t, 75*time.Second, func() error {
		if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
			return fmt.Errorf("fsck: %w\n%s%s", err, stdout, stderr)
		}
		return nil
	})
	for _, path := range append(hostile, "/ok") {
		if x.requests(path) == 0 {
			t.Errorf("nothing was sent to %s", path)
		}
	}
	closes := 0
	for _, id := range load.ids {
		stdout, stderr, err := p.tryCLI("replay", "credits-"+id)
		if err != nil {
			t.Fatal(err, stderr)
		}
		closes += strings.Count(stdout, "credits.closed")
	}
	t.Logf("%d jobs acknowledged, %d cancelled, %d completed, %d asked about, %d answered; %d ledgers closed",
		len(load.jobs), len(load.cancelled), len(load.completed), len(load.asked), len(load.answered), closes)
	if closes == 0 && len(load.jobs) > 1000 {
		t.Error("no ledger was ever closed")
	}
	if len(load.jobs) == 0 || len(load.completed) == 0 || len(load.asked) == 0 {
		t.Error("the load did nothing")
	}
	s.stop()
}

// killPostgres stops the embedded server as `pg_ctl stop -m immediate` does:
// without a checkpoint, every connection cut.
func (p *program) killPostgres() {
	p.t.Helper()
	var raw []byte
	eventually.Within(p.t, time.Minute, func() (err error) { // it may be on its way up from the last blow
		raw, err = os.ReadFile(filepath.Join(p.dir, "postgres", "data", "postmaster.pid"))
		return err
	})
	line, _, _ := strings.Cut(string(raw), "\n")
	pid, err := strconv.Atoi(line)
	must.NoError(p.t, err)
	must.NoError(p.t, syscall.Kill(pid, syscall.SIGQUIT))
}

// load is clients and checkers at work. Each repeats a call, with the same
// Idempotency-Key, until it gets an answer that settles it.
type load struct {
	*program
	dice     *rand.Rand
	accounts []string // keys
	ids      []string // of the accounts
	checkers []string
	projects map[string][]string // of an account's key
	quit     chan struct{}
	workers  sync.WaitGroup

	mu        sync.Mutex
	jobs      map[string]string // id to the account's key, of every acknowledged submission
	cancelled map[string]bool
	completed map[string]bool
	asked     map[string]int  // the questions of a job that were acknowledged
	answered  map[string]bool // jobs with an answer that was acknowledged
}

func (l *load) hasAsked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asked) > 0
}

func newLoad(p *program, dice *rand.Rand) *load {
	l := &load{
		program: p, dice: dice, quit: make(chan struct{}),
		projects: map[string][]string{}, jobs: map[string]string{}, cancelled: map[string]bool{}, completed: map[string]bool{},
		asked: map[string]int{}, answered: map[string]bool{},
	}
	for range 3 {
		id, key := p.newAccount(100_000)
		l.accounts, l.ids = append(l.accounts, key), append(l.ids, id)
		_, key = p.newChecker()
		l.checkers = append(l.checkers, key)
	}
	return l
}

// receivers gives each account a project whose endpoint behaves and one for each
// kind that does not.
func (l *load) receivers(x *strangers) {
	for _, key := range l.accounts {
		for _, path := range append([]string{"/ok"}, hostile...) {
			l.projects[key] = append(l.projects[key], l.newProject(key, x.URL+path))
		}
	}
}

func (l *load) start() {
	for i := range 6 {
		dice := rand.New(rand.NewPCG(l.dice.Uint64(), 1)) //nolint:gosec // repeatable on purpose
		l.workers.Go(func() { l.submitAndCancel(i, l.accounts[i%len(l.accounts)], dice) })
	}
	for _, key := range l.checkers {
		dice := rand.New(rand.NewPCG(l.dice.Uint64(), 2)) //nolint:gosec // repeatable on purpose
		l.workers.Go(func() { l.workQueue(key, dice) })
	}
}

// stop lets every worker bring its last call to an end.
func (l *load) stop() {
	close(l.quit)
	l.workers.Wait()
}

func (l *load) going() bool {
	select {
	case <-l.quit:
		return false
	default:
		return true
	}
}

// settled repeats a call until the answer says what happened; 409s that only
// say "still under way" are repeated too.
func (l *load) settled(method, path, key string, body any, header ...string) reply {
	deadline := time.Now().Add(3 * time.Minute)
	for {
		r, err := l.try(method, path, key, body, header...)
		if err == nil && r.status < 500 && (r.status != 409 || r.header.Get("Retry-After") == "") {
			return r
		}
		if time.Now().After(deadline) {
			l.t.Errorf("%s %s: no answer that settles it: %v %d %s", method, path, err, r.status, r.body)
			return r
		}
		time.Sleep(20 * time.Millisecond) // the service is down, or busy with this very call
	}
}

func (l *load) submitAndCancel(worker int, key string, dice *rand.Rand) {
	for n := 0; l.going(); n++ {
		var project []any // in turn, where there are receivers
		if all := l.projects[key]; len(all) > 0 {
			project = []any{"projectId", all[n%len(all)]}
		}
		r := l.settled("POST", "/v1/jobs", key, submission(1+dice.IntN(3), project...), "Idempotency-Key", fmt.Sprintf("%d-%d", worker, n))
		switch {
		case r.status == 409 && strings.Contains(string(r.body), "abandoned"):
			continue // settled by the policy while we were cut off
		case r.status != 201:
			l.t.Errorf("submit: %d %s", r.status, r.body)
			return
		}
		id := r.text("jobId")
		l.mu.Lock()
		if _, twice := l.jobs[id]; twice {
			l.t.Errorf("two submissions were answered with the job %s", id)
		}
		l.jobs[id] = key
		l.mu.Unlock()
		if dice.IntN(5) > 0 {
			continue
		}
		if r := l.settled("POST", "/v1/jobs/"+id+"/cancel", key, nil); r.status == 200 {
			l.mu.Lock()
			l.cancelled[id] = true
			l.mu.Unlock()
		}
	}
}

func (l *load) workQueue(key string, dice *rand.Rand) {
	for l.going() {
		r := l.settled("POST", "/v1/checker/claims", key, nil)
		if r.status != 201 {
			// Nothing to do, or a claim whose answer was lost with the service.
			l.resume(key, r, dice)
			continue
		}
		l.work(key, r, dice)
	}
}

// resume goes on with a claim whose answer never reached us: the refusal of the
// next one names it.
func (l *load) resume(key string, refused reply, dice *rand.Rand) {
	held, _ := refused.field("claimedJobs").([]any)
	for _, id := range held {
		if r := l.settled("POST", "/v1/checker/claims", key, map[string]any{"jobId": id}); r.status == 201 {
			l.work(key, r, dice)
		}
	}
}

func (l *load) work(key string, claim reply, dice *rand.Rand) {
	id, token := claim.text("jobId"), claim.text("claimToken")
	var list struct{ Checklist []struct{ ID string } }
	if err := json.Unmarshal(claim.body, &list); err != nil {
		l.t.Errorf("claim: %v: %s", err, claim.body)
		return
	}
	if dice.IntN(8) == 0 {
		l.settled("POST", "/v1/checker/jobs/"+id+"/release", key, nil, "X-Claim-Token", token)
		return
	}
	if dice.IntN(4) == 0 {
		l.ask(id, token, key, list.Checklist[0].ID, dice)
	}
	for _, item := range list.Checklist {
		status := []string{"pass", "fail"}[dice.IntN(2)]
		r := l.settled("PUT", "/v1/checker/jobs/"+id+"/items/"+item.ID, key, map[string]any{"status": status}, "X-Claim-Token", token)
		if r.status != 200 {
			l.t.Errorf("check an item of %s: %d %s", id, r.status, r.body)
			return
		}
	}
	r := l.settled("POST", "/v1/checker/jobs/"+id+"/complete", key, map[string]any{"summary": "looked at it"}, "X-Claim-Token", token)
	if r.status != 200 {
		l.t.Errorf("complete %s: %d %s", id, r.status, r.body)
		return
	}
	l.mu.Lock()
	l.completed[id] = true
	l.mu.Unlock()
}

// ask has the checker ask about an item. The client answers, or leaves the question to the
// claim's end.
func (l *load) ask(id, token, key, item string, dice *rand.Rand) {
	question := map[string]any{"text": "Which code came by mail?", "kind": "code", "itemId": item}
	r := l.settled("POST", "/v1/checker/jobs/"+id+"/questions", key, question, "X-Claim-Token", token, "Idempotency-Key", "ask-"+id+token)
	if r.status != 201 {
		l.t.Errorf("ask about %s: %d %s", id, r.status, r.body)
		return
	}
	l.mu.Lock()
	l.asked[id]++
	client := l.jobs[id]
	l.mu.Unlock()
	if client == "" || dice.IntN(3) == 0 { // the submission is not acknowledged yet, or nobody answers
		return
	}
	at := "/v1/jobs/" + id + "/questions/" + r.text("questionId") + "/answer"
	r = l.settled("POST", at, client, map[string]any{"text": "By mail.", "secret": "483112"}, "Idempotency-Key", "answer-"+id+token)
	if r.status != 200 {
		l.t.Errorf("answer to %s: %d %s", id, r.status, r.body)
		return
	}
	l.mu.Lock()
	l.answered[id] = true
	l.mu.Unlock()
}

// checkQuestions holds the questions of a job against what was acknowledged.
func (l *load) checkQuestions(id, key, status string) {
	if l.asked[id] == 0 {
		return
	}
	r := l.call(200, "GET", "/v1/jobs/"+id+"/questions", key, nil)
	answered := strings.Contains(string(r.body), `"status":"answered"`)
	open := strings.Contains(string(r.body), `"status":"open"`)
	if len(r.list("questions")) != l.asked[id] || answered != l.answered[id] || open && status == "completed" {
		l.t.Errorf("%s is %s: %d questions and the answer (%t) were acknowledged: %s", id, status, l.asked[id], l.answered[id], r.body)
	}
}

// check holds what the service says now against what it acknowledged.
func (l *load) check() {
	jobs := map[string]int{}
	charged := map[string]int{}
	for id, key := range l.jobs {
		r := l.call(200, "GET", "/v1/jobs/"+id, key, nil)
		jobs[key]++
		status := r.text("status")
		if status != "cancelled" {
			charged[key] += 5
		}
		if l.cancelled[id] && status != "cancelled" {
			l.t.Errorf("%s was acknowledged as cancelled and is %s", id, status)
		}
		if l.completed[id] && status != "completed" {
			l.t.Errorf("%s was acknowledged as completed and is %s", id, status)
		}
		l.checkQuestions(id, key, status)
	}
	for _, key := range l.accounts {
		if total := l.call(200, "GET", "/v1/jobs?limit=1", key, nil).number("total"); total != jobs[key] {
			l.t.Errorf("%d jobs exist, %d were acknowledged", total, jobs[key])
		}
		// A debit that lost its job while we were cut off is refunded by the
		// policy soon.
		eventually.Within(l.t, 75*time.Second, func() error {
			if used := l.call(200, "GET", "/v1/credits", key, nil).number("used"); used != charged[key] {
				return fmt.Errorf("%d credits used, the jobs cost %d", used, charged[key])
			}
			return nil
		})
	}
}
