package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	ossignal "os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// One service serves all the stories below; each has an account of its own. They come one
// after the other: in parallel each would wait for its turn among all tests of the package,
// and the service with them. The demo's comes first: it tells what its account has.
func TestTheService(t *testing.T) {
	t.Parallel()
	letters := mailtest.Start(t, "127.0.0.1:0", nil)
	s := newProgram(t, "HUMANQA_ADMIN_ADDR="+process.Address(t),
		"HUMANQA_SMTP_URL=smtp://"+letters.Address+"?starttls=off", "HUMANQA_SMTP_FROM=qa@example.com").start("--demo")
	t.Run("the demo tells one job's life", func(t *testing.T) { demoStory(t, s.in(t)) })
	t.Run("the demo goes on after one that was cut off", func(t *testing.T) { demoCutOff(t, s.in(t)) })
	for name, story := range map[string]func(*testing.T, *instance){
		"a job from submission to report":                         jobStory,
		"twenty parallel submits with credits for one":            parallelSubmits,
		"sixty-four parallel claims of one job":                   parallelClaims,
		"the same idempotency key has one effect":                 idempotentSubmit,
		"a cancelled job is refunded once":                        cancelStory,
		"a client sees only what is its own":                      isolation,
		"suspended accounts and revoked keys are refused at once": accessStory,
		"a replay shows no secret":                                replayStory,
		"a second service on the data directory is refused":       secondService,
		"links from the command line lead in":                     linksStory,
		"an account is ready when it is printed":                  accountCommands,
		"a key works at once, as far as it may":                   keyCommands,
		"granted credits are there at once":                       creditsCommands,
		"a checker can work at once":                              checkerCommands,
		"an operator cancels a job":                               jobCommands,
		"the read models are listed and rebuilt":                  projectionCommands,
		"what operators do is on record":                          recordedCommands,
		"the doctor finds a healthy service":                      doctorCommands,
		"a mistake is one line and the right status":              mistakes,
		"a checker is erased":                                     checkerErased,
		"a person is erased":                                      personErased,
		"the alerts and the board know the metrics":               alertsKnowMetrics,
		"the official libraries verify deliveries":                officialLibraries,
		"a request's id is in its webhook without traces":         requestIDWithoutTraces,
	} {
		t.Run(name, func(t *testing.T) { story(t, s.in(t)) })
	}
	for name, play := range sandboxStories {
		t.Run("in a sandbox, "+name, func(t *testing.T) { play(t, s.in(t), func() {}) })
	}
	t.Run("a full disk is told of, costs nothing and heals", func(t *testing.T) { fullDiskStory(t, s.in(t)) })
	s.fsck()
}

// in is the same service reporting to another test.
func (s *instance) in(t *testing.T) *instance {
	p := *s.program
	p.t = t
	return &instance{&p, s.In(t)}
}

// fsck checks every invariant on the data as it is.
func (p *program) fsck() {
	p.t.Helper()
	if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
		p.t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
}

func jobStory(t *testing.T, s *instance) {
	_, key := s.newAccount(100)
	_, checkerKey := s.newChecker()

	created := s.call(201, "POST", "/v1/jobs", key, submission(3, "title", "The story's own",
		"credentials", map[string]any{"username": "shopper", "password": "hunter2"}))
	id := created.text("jobId")
	if created.text("status") != "pending" || created.number("creditsDeducted") != 5 || created.number("checklistItemCount") != 3 {
		t.Errorf("created: %s", created.body)
	}
	// Read your writes.
	if got := s.call(200, "GET", "/v1/jobs/"+id, key, nil); got.text("status") != "pending" || got.text("jobType") != "Payment Flow" {
		t.Errorf("job: %s", got.body)
	}
	if got := s.call(200, "GET", "/v1/credits", key, nil); got.number("available") != 95 || got.number("used") != 5 {
		t.Errorf("credits: %s", got.body)
	}
	s.call(404, "GET", "/v1/jobs/"+id+"/report", key, nil)

	claim := s.call(201, "POST", "/v1/checker/claims", checkerKey, map[string]any{"jobId": id})
	if !strings.Contains(string(claim.body), "hunter2") {
		t.Errorf("the claimant does not see the credentials: %s", claim.body)
	}
	token := claim.text("claimToken")
	var checklist struct{ Checklist []struct{ ID string } }
	must.NoError(t, json.Unmarshal(claim.body, &checklist))
	complete := "/v1/checker/jobs/" + id + "/complete"
	unchecked := s.call(409, "POST", complete, checkerKey, map[string]any{"summary": "too early"}, "X-Claim-Token", token)
	if items, _ := unchecked.field("uncheckedItems").([]any); len(items) != 3 {
		t.Errorf("unchecked: %s", unchecked.body)
	}
	for i, item := range checklist.Checklist {
		verdict := map[string]any{"status": []string{"pass", "fail", "skip"}[i], "note": "seen"}
		if i == 2 {
			verdict["reason"] = "no_access"
		}
		s.call(200, "PUT", "/v1/checker/jobs/"+id+"/items/"+item.ID, checkerKey, verdict, "X-Claim-Token", token)
	}
	s.call(409, "POST", complete, checkerKey, map[string]any{"summary": "stale"}, "X-Claim-Token", "99")
	done := s.call(200, "POST", complete, checkerKey, map[string]any{"summary": "one bug"}, "X-Claim-Token", token)
	if done.text("overallStatus") != "fail" {
		t.Errorf("done: %s", done.body)
	}
	report := s.call(200, "GET", "/v1/jobs/"+id+"/report", key, nil)
	if report.number("passCount") != 1 || report.number("failCount") != 1 || report.number("skipCount") != 1 ||
		report.text("checkerSummary") != "one bug" || report.text("id") != done.text("reportId") {
		t.Errorf("report: %s", report.body)
	}
	if got := s.call(200, "GET", "/v1/jobs/"+id, key, nil); got.text("status") != "completed" || got.text("completedAt") == "" {
		t.Errorf("job: %s", got.body)
	}
}

func parallelSubmits(t *testing.T, s *instance) {
	_, key := s.newAccount(5)
	statuses := inParallel(20, func(int) int {
		r, err := s.try("POST", "/v1/jobs", key, submission(1))
		if err != nil {
			t.Error(err)
		}
		return r.status
	})
	if statuses[201] != 1 || statuses[402] != 19 {
		t.Errorf("statuses: %v, want one 201 and nineteen 402", statuses)
	}
	if got := s.call(200, "GET", "/v1/jobs", key, nil); got.number("total") != 1 {
		t.Errorf("jobs: %s", got.body)
	}
}

func parallelClaims(t *testing.T, s *instance) {
	_, key := s.newAccount(5)
	id := s.call(201, "POST", "/v1/jobs", key, submission(1)).text("jobId")
	checkers := s.newCheckers(64)
	statuses := inParallel(len(checkers), func(i int) int {
		r, err := s.try("POST", "/v1/checker/claims", checkers[i], map[string]any{"jobId": id})
		if err != nil {
			t.Error(err)
		}
		return r.status
	})
	if statuses[201] != 1 || statuses[409] != 63 {
		t.Errorf("statuses: %v, want one 201 and sixty-three 409", statuses)
	}
}

func idempotentSubmit(t *testing.T, s *instance) {
	_, key := s.newAccount(100)
	first := s.call(201, "POST", "/v1/jobs", key, submission(1), "Idempotency-Key", "abc")
	again := s.call(201, "POST", "/v1/jobs", key, submission(1), "Idempotency-Key", "abc")
	if string(first.body) != string(again.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %s, want %s", again.body, first.body)
	}
	s.call(409, "POST", "/v1/jobs", key, submission(2), "Idempotency-Key", "abc")
	project := s.call(201, "POST", "/v1/projects", key, map[string]any{"name": "Shop"}, "Idempotency-Key", "p")
	replayed := s.call(201, "POST", "/v1/projects", key, map[string]any{"name": "Shop"}, "Idempotency-Key", "p")
	if project.text("deployHookUrl") == "" || project.text("deployHookUrl") != replayed.text("deployHookUrl") {
		t.Errorf("project: %s and %s", project.body, replayed.body)
	}
	if got := s.call(200, "GET", "/v1/credits", key, nil); got.number("used") != 5 {
		t.Errorf("credits: %s", got.body)
	}
}

func cancelStory(t *testing.T, s *instance) {
	_, key := s.newAccount(10)
	id := s.call(201, "POST", "/v1/jobs", key, submission(1, "priority", "urgent")).text("jobId")
	s.call(402, "POST", "/v1/jobs", key, submission(1))
	first := s.call(200, "POST", "/v1/jobs/"+id+"/cancel", key, nil)
	again := s.call(200, "POST", "/v1/jobs/"+id+"/cancel", key, nil)
	if first.number("creditsRefunded") != 10 || first.number("creditsRemaining") != 10 || string(first.body) != string(again.body) {
		t.Errorf("cancelled: %s, then %s", first.body, again.body)
	}
	if got := s.call(200, "GET", "/v1/jobs/"+id, key, nil); got.text("status") != "cancelled" || got.number("creditsUsed") != 0 {
		t.Errorf("job: %s", got.body)
	}
}

func isolation(t *testing.T, s *instance) {
	_, mine := s.newAccount(100)
	_, theirs := s.newAccount(100)
	project := s.call(201, "POST", "/v1/projects", mine, map[string]any{"name": "Shop"}).text("projectId")
	id := s.call(201, "POST", "/v1/jobs", mine, submission(1, "projectId", project)).text("jobId")
	for _, path := range []string{"/v1/jobs/" + id, "/v1/jobs/" + id + "/report", "/v1/projects/" + project} {
		if r := s.call(404, "GET", path, theirs, nil); strings.Contains(string(r.body), id) || strings.Contains(string(r.body), project) {
			t.Errorf("GET %s tells the id: %s", path, r.body)
		}
	}
	s.call(404, "POST", "/v1/jobs/"+id+"/cancel", theirs, nil)
	s.call(404, "PATCH", "/v1/projects/"+project, theirs, map[string]any{"name": "Mine"})
	s.call(404, "POST", "/v1/jobs", theirs, submission(1, "projectId", project))
	if r := s.call(200, "GET", "/v1/jobs?projectId="+project, theirs, nil); r.number("total") != 0 {
		t.Errorf("their list: %s", r.body)
	}
	if r := s.call(200, "GET", "/v1/credits", theirs, nil); r.number("used") != 0 {
		t.Errorf("their credits: %s", r.body)
	}
}

func accessStory(t *testing.T, s *instance) {
	account, key := s.newAccount(100)
	s.call(200, "GET", "/v1/credits", key, nil)
	s.cli(nil, "account", "suspend", "--account", account)
	if r := s.call(403, "GET", "/v1/credits", key, nil); r.text("code") != "ACCOUNT_SUSPENDED" {
		t.Errorf("suspended: %s", r.body)
	}
	s.cli(nil, "account", "reinstate", "--account", account)
	s.call(200, "GET", "/v1/credits", key, nil)
	var read struct{ KeyID, APIKey string }
	s.cli(&read, "key", "create", "--account", account, "--scope", "read")
	s.call(200, "GET", "/v1/credits", read.APIKey, nil)
	s.call(403, "POST", "/v1/jobs", read.APIKey, submission(1))
	s.cli(nil, "key", "revoke", "--key", read.KeyID)
	s.call(401, "GET", "/v1/credits", read.APIKey, nil)
	s.call(401, "GET", "/v1/checker/queue", key, nil)
}

func replayStory(t *testing.T, s *instance) {
	account, key := s.newAccount(100)
	id := s.call(201, "POST", "/v1/jobs", key, submission(1,
		"credentials", map[string]any{"username": "shopper", "password": "hunter2"})).text("jobId")
	for stream, want := range map[string]string{
		"job-" + id: "job.created", "credits-" + account: "credits.debited", "account-" + account: "account.key_issued",
	} {
		stdout, stderr, err := s.tryCLI("replay", stream)
		if err != nil || !strings.Contains(stdout, want) {
			t.Errorf("replay %s: %v %s\n%s", stream, err, stderr, stdout)
		}
		if strings.Contains(stdout, "hunter2") || strings.Contains(stdout, key) {
			t.Errorf("replay %s shows a secret:\n%s", stream, stdout)
		}
	}
	s.call(200, "POST", "/v1/jobs/"+id+"/cancel", key, nil)
	events := s.replayed("job-" + id)
	text, _, err := s.tryCLI("replay", "job-"+id)
	must.NoError(t, err)
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if e := events[i]; !strings.Contains(line, "  "+e.Position+"  ") || !strings.Contains(line, "Z  "+e.ID.String()+"  ") {
			t.Errorf("%s with the id %s is shown as %s", e.Type, e.ID, line)
		}
	}
	var first domain.Metadata
	must.NoError(t, json.Unmarshal(events[0].Meta, &first))
	begins := "job-" + id + " begins at position " + events[0].Position + ", at " + first.Time.Format("2006-01-02T15:04:05.000Z")
	for before, of := range map[string][]string{"1": {"job-" + id}, "2001-01-01T00:00:00Z": {"--account", account}} {
		_, stderr, err := s.tryCLI(append([]string{"replay", "--until", before}, of...)...)
		if want := before + " lies before the first event: " + begins; exitCode(err) != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("replay %v until %s: %v %s, want %s", of, before, err, stderr, want)
		}
	}
	for _, c := range []struct {
		args []string
		want string // of the last line
		n    int
	}{
		{[]string{"job-" + id, "--state"}, `"Status":"cancelled"`, len(events)},
		{[]string{"job-" + id, "--state", "--until", events[0].Position}, `"Credentials":"[sealed]"`, 1},
		{[]string{"--account", account, "--category", "job"}, `"job.cancelled"`, len(events)},
		{[]string{"--account", account, "--category", "credits", "--until", "2999-01-01"}, `"credits.refunded"`, 3},
	} {
		stdout, stderr, err := s.tryCLI(append([]string{"replay", "--format", "json"}, c.args...)...)
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if err != nil || len(lines) != c.n || !strings.Contains(lines[len(lines)-1], c.want) {
			t.Errorf("replay %v: %v %s\n%s", c.args, err, stderr, stdout)
		}
	}
}

// inParallel runs n calls at once and counts what they return.
func inParallel(n int, call func(i int) int) map[int]int {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		counts = make(map[int]int)
	)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			got := call(i)
			mu.Lock()
			defer mu.Unlock()
			counts[got]++
		})
	}
	close(start)
	wg.Wait()
	return counts
}

func secondService(t *testing.T, s *instance) {
	_, stderr, err := s.tryCLI("serve")
	if err == nil || !strings.Contains(stderr, fmt.Sprint(os.Getpid())) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%v: %q, want one line that names process %d", err, stderr, os.Getpid())
	}
}

// A closed terminal is a stop like any other.
func TestAStopLetsAcceptedRequestsFinish(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	s := p.spawn()
	_, key := s.newAccount(5 * 400)
	jobs := s.stopUnderLoad(key, syscall.SIGTERM)
	if !ossignal.Ignored(syscall.SIGHUP) { // else these tests run under nohup, and so does the service
		s = p.spawn()
		jobs = append(jobs, s.stopUnderLoad(key, syscall.SIGHUP)...)
	}

	// Under nohup a terminal that is closed ends nothing.
	again := p.launchAs(exec.Command("sh", "-c", `trap "" HUP; exec "$0" serve`, os.Args[0])) //nolint:noctx // this very binary, stopped below
	again.waitReady()
	must.NoError(t, again.Cmd.Process.Signal(syscall.SIGHUP))
	for _, id := range jobs {
		again.call(200, "GET", "/v1/jobs/"+id, key, nil)
	}
	if r := again.call(200, "GET", "/v1/credits", key, nil); r.number("used") != 5*r.number("jobs")+5*len(jobs) {
		t.Errorf("%d jobs were acknowledged, credits: %s", len(jobs), r.body)
	}
	again.fsck()
	if !again.Running() {
		t.Error("the service is gone")
	}
}

// stopUnderLoad ends the service by the signal while eight clients submit, and
// gives the jobs that were acknowledged.
func (s *instance) stopUnderLoad(key string, signal syscall.Signal) (jobs []string) {
	s.t.Helper()
	var mu sync.Mutex
	answered := make(chan struct{}, 1000)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				r, err := s.try("POST", "/v1/jobs", key, submission(1))
				if err != nil || r.status != http.StatusCreated {
					return // the listener is closed, or the credits are gone
				}
				mu.Lock()
				jobs = append(jobs, r.text("jobId"))
				mu.Unlock()
				answered <- struct{}{}
			}
		})
	}
	for range 20 {
		select {
		case <-answered:
		case <-time.After(eventually.Patience):
			s.t.Fatal("no answers")
		}
	}
	s.Stop(signal)
	clients.Wait()
	return jobs
}
