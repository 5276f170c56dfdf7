package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"humanqa/internal/testing/eventually"
)

// load is clients and checkers at work. Each repeats a call, with the same
// Idempotency-Key, until it gets an answer that settles it.
type load struct {
	*program
	attempt  func(method, path, key string, body any, header ...string) (reply, error)
	races    bool          // for jobs: checkers claim near the head of the queue, and clients cancel there
	settles  time.Duration // how long a call is repeated
	name     string        // of the load, in the ids of its requests
	calls    atomic.Uint64
	answers  atomic.Uint64 // to calls, which settle them
	dice     *rand.Rand
	accounts []string // keys
	ids      []string // of the accounts
	checkers []string
	projects map[string][]string // of an account's key
	quit     chan struct{}
	workers  sync.WaitGroup

	mu        sync.Mutex
	jobs      map[string]string // id to the account's key, of every acknowledged submission
	titles    map[string]string // of the jobs; each is found nowhere else
	tasks     map[string]bool   // jobs that an agent submitted
	refused   int               // for want of credits
	cancelled map[string]bool
	completed map[string]bool
	ended     map[string]string // the states in the end
	asked     map[string]int    // the questions of a job that were acknowledged
	answered  map[string]bool   // jobs with an answer that was acknowledged
	vanishing map[string]bool   // jobs of accounts that are erased meanwhile
	erasing   map[string]bool   // jobs that an operator erases
	copied    map[string]bool   // jobs whose words a new test has, too
	contests  map[string]*contest
}

// hasWorked says that each kind of work was done once at least.
func (l *load) hasWorked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	decided := l.contests == nil
	for _, c := range l.contests {
		decided = decided || c.decided
	}
	return len(l.jobs) > 0 && len(l.completed) > 0 && len(l.asked) > 0 && decided
}

// plenty are grants that no test spends.
var plenty = []int{100_000, 100_000, 100_000}

// newLoad opens an account for each grant, and as many checkers.
func newLoad(p *program, dice *rand.Rand, grants ...int) *load {
	l := &load{
		program: p, attempt: p.try, settles: eventually.Patience, dice: dice, quit: make(chan struct{}),
		projects: map[string][]string{}, jobs: map[string]string{}, cancelled: map[string]bool{}, completed: map[string]bool{}, ended: map[string]string{},
		asked: map[string]int{}, answered: map[string]bool{}, titles: map[string]string{}, tasks: map[string]bool{}, vanishing: map[string]bool{},
		erasing: map[string]bool{},
	}
	for _, credits := range grants {
		id, key := p.newAccount(credits)
		l.accounts, l.ids = append(l.accounts, key), append(l.ids, id)
		_, key = p.newChecker()
		l.checkers = append(l.checkers, key)
	}
	return l
}

// receivers gives each account a project for each endpoint.
func (l *load) receivers(url string, paths []string) {
	for _, key := range l.accounts {
		for _, path := range paths {
			l.projects[key] = append(l.projects[key], l.newProject(key, url+path))
		}
	}
}

func (l *load) start() {
	for i := range 6 {
		l.submit(i, l.accounts[i%len(l.accounts)])
	}
	for _, key := range l.checkers {
		l.takeFromQueue(key)
	}
}

// submit adds a client of the account, and takeFromQueue adds a checker.
func (l *load) submit(worker int, key string) {
	dice := rand.New(rand.NewPCG(l.dice.Uint64(), 1))
	l.workers.Go(func() { l.submitAndCancel(worker, key, dice) })
}

func (l *load) takeFromQueue(key string) {
	dice := rand.New(rand.NewPCG(l.dice.Uint64(), 2))
	l.workers.Go(func() { l.workQueue(key, dice) })
}

// goesOn waits until so many more calls have got an answer that settles them.
func (l *load) goesOn(calls uint64) {
	l.t.Helper()
	until := l.answers.Load() + calls
	eventually.Within(l.t, eventually.Patience, func() error {
		if n := l.answers.Load(); n < until {
			return fmt.Errorf("the load stands still: %d calls were answered, want %d", n, until)
		}
		return nil
	})
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
// say "still under way" are repeated too. All repeats have one X-Request-Id.
func (l *load) settled(method, path, key string, body any, header ...string) reply {
	deadline := time.Now().Add(l.settles)
	header = append(header, "X-Request-Id", fmt.Sprintf("load-%s-%d", l.name, l.calls.Add(1)))
	for {
		r, err := l.attempt(method, path, key, body, header...)
		if err == nil && r.status < 500 && (r.status != 409 || r.header.Get("Retry-After") == "") {
			l.answers.Add(1)
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
	var mine []string
	for n := 0; l.going(); n++ {
		more := []any{"title", fmt.Sprintf("Test %s %d of client %d", l.name, n, worker)}
		if all := l.projects[key]; len(all) > 0 { // in turn, where there are receivers
			more = append(more, "projectId", all[n%len(all)])
		}
		r := l.settled("POST", "/v1/jobs", key, submission(1+dice.IntN(3), more...), "Idempotency-Key", fmt.Sprintf("%d-%d", worker, n))
		switch {
		case r.status == 409 && strings.Contains(string(r.body), "abandoned"):
			continue // settled by the policy while we were cut off
		case r.status == 402:
			l.mu.Lock()
			l.refused++
			l.mu.Unlock()
			l.look(key, mine, dice)
			if len(mine) > 0 {
				l.cancel(key, mine[dice.IntN(len(mine))])
			}
			time.Sleep(50 * time.Millisecond) // a refusal is quick, and the others' calls are the point
			continue
		case r.status != 201:
			l.t.Errorf("submit: %d %s", r.status, r.body)
			return
		}
		id := r.text("jobId")
		l.note(id, key, fmt.Sprint(more[1]))
		mine = append(mine, id)
		l.look(key, mine, dice)
		if dice.IntN(5) == 0 {
			l.cancel(key, id)
		}
		for l.races && len(mine) > 1 && dice.IntN(2) == 0 {
			l.cancel(key, mine[0])
			mine = mine[1:]
		}
	}
}

func (l *load) note(id, key, title string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, twice := l.jobs[id]; twice {
		l.t.Errorf("two submissions were answered with the job %s", id)
	}
	l.jobs[id], l.titles[id] = key, title
}

// look reads a job, the newest one more often than others, or the credits.
func (l *load) look(key string, jobs []string, dice *rand.Rand) {
	switch n := dice.IntN(5); {
	case n == 0:
		l.settled("GET", "/v1/credits", key, nil)
	case n < 3 && len(jobs) > 0:
		at := max(len(jobs)-1-dice.IntN(3)*dice.IntN(5), 0)
		l.settled("GET", "/v1/jobs/"+jobs[at], key, nil)
	}
}

func (l *load) cancel(key, id string) {
	if r := l.settled("POST", "/v1/jobs/"+id+"/cancel", key, nil); r.status == 200 {
		l.mu.Lock()
		l.cancelled[id] = true
		l.mu.Unlock()
	}
}

func (l *load) workQueue(key string, dice *rand.Rand) {
	for l.going() {
		r, queued := l.claim(key, dice)
		if !queued {
			time.Sleep(20 * time.Millisecond) // until clients have submitted more
			continue
		}
		if r.status != 201 {
			// Nothing to do, or a claim whose answer was lost with the service.
			l.resume(key, r, dice)
			continue
		}
		l.work(key, r, dice)
	}
}

// claim claims the next job of the queue, or one near its head by its id, so that checkers
// race for it. queued is false for an empty queue that was read.
func (l *load) claim(key string, dice *rand.Rand) (r reply, queued bool) {
	if !l.races {
		return l.settled("POST", "/v1/checker/claims", key, nil), true
	}
	queue := l.settled("GET", "/v1/checker/queue?limit=4", key, nil).list("jobs")
	if len(queue) == 0 {
		return reply{}, false
	}
	entry, _ := queue[dice.IntN(len(queue))].(map[string]any)
	return l.settled("POST", "/v1/checker/claims", key, map[string]any{"jobId": entry["id"]}), true
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
			l.declined("check an item of", id, r)
			return
		}
	}
	r := l.settled("POST", "/v1/checker/jobs/"+id+"/complete", key, map[string]any{"summary": "looked at it"}, "X-Claim-Token", token)
	if r.status != 200 {
		l.declined("complete", id, r)
		return
	}
	l.mu.Lock()
	l.completed[id] = true
	l.mu.Unlock()
	if l.contests != nil && dice.IntN(3) == 0 {
		l.dispute(id, key, list.Checklist[0].ID, dice)
	}
}

// declined reports a refusal, unless the job's account is being erased.
func (l *load) declined(what, id string, r reply) {
	if !l.vanishing[id] {
		l.t.Errorf("%s %s: %d %s", what, id, r.status, r.body)
	}
}

// ask has the checker ask about an item. The client answers, or leaves the question to the
// claim's end.
func (l *load) ask(id, token, key, item string, dice *rand.Rand) {
	question := map[string]any{"text": "Which code came by mail?", "kind": "code", "itemId": item}
	r := l.settled("POST", "/v1/checker/jobs/"+id+"/questions", key, question, "X-Claim-Token", token, "Idempotency-Key", "ask-"+id+token)
	if r.status != 201 {
		l.declined("ask about", id, r)
		return
	}
	l.mu.Lock()
	l.asked[id]++
	client, isTask := l.jobs[id], l.tasks[id]
	l.mu.Unlock()
	if client == "" || dice.IntN(3) == 0 { // the submission is not acknowledged yet, or nobody answers
		return
	}
	answer := map[string]any{"text": "By mail.", "secret": "483112"}
	if isTask {
		l.answersTask(client, id, r.text("questionId"), answer)
		// An update is acknowledged also if the claim has ended meanwhile: then it answers nothing.
		if told := l.settled("GET", "/v1/jobs/"+id+"/questions", client, nil); !strings.Contains(string(told.body), `"status":"answered"`) {
			return
		}
	} else if r = l.settled("POST", "/v1/jobs/"+id+"/questions/"+r.text("questionId")+"/answer", client, answer, "Idempotency-Key", "answer-"+id+token); r.status != 200 {
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
		l.ended[id] = status
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
	made := l.checkDisputes()
	for _, key := range l.accounts {
		if total := l.call(200, "GET", "/v1/jobs?limit=1", key, nil).number("total"); total != jobs[key]+made[key] {
			l.t.Errorf("%d jobs exist, %d were acknowledged, and %d are new tests of disputes", total, jobs[key], made[key])
		}
		// A debit that lost its job while we were cut off is refunded by the
		// policy soon.
		eventually.Within(l.t, eventually.Patience, func() error {
			if used := l.call(200, "GET", "/v1/credits", key, nil).number("used"); used != charged[key] {
				return fmt.Errorf("%d credits used, the jobs cost %d", used, charged[key])
			}
			return nil
		})
	}
}
