package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"testing"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

// asking is a receiver that reads what each webhook tells, in the moment in which it has it.
type asking struct {
	p   *program
	key string

	mu    sync.Mutex
	agree map[string]int // by event
	wrong []string
}

// toldAt is where an event can be read, and the statuses of the job that contradict it.
var toldAt = map[string]struct {
	path, older string
}{
	"job.created":         {"", ""},
	"job.claimed":         {"", "pending"},
	"job.completed":       {"/report", ""},
	"job.ai_report_ready": {"/ai-report", "generating"},
	"job.cancelled":       {"", "pending"},
}

func (r *asking) read(event string, body []byte) {
	var of struct{ JobID string }
	err := json.Unmarshal(body, &of)
	at := toldAt[event]
	var got reply
	if err == nil {
		got, err = r.p.try("GET", "/v1/jobs/"+of.JobID+at.path, r.key, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || got.status != http.StatusOK || got.text("status") == at.older && at.older != "" {
		r.wrong = append(r.wrong, fmt.Sprintf("%s: %v %d %s", event, err, got.status, got.body))
		return
	}
	r.agree[event]++
}

func (r *asking) all() (agree map[string]int, wrong []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.agree), r.wrong
}

func TestAReceiverReadsWhatEachWebhookTells(t *testing.T) {
	t.Parallel()
	const checkers, each = 4, 8
	for name, start := range map[string]func(*testing.T, *strangers) *instance{"in one process": inOneProcess, "roles apart": rolesApart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newStrangers(t)
			s := start(t, x)
			_, key := s.newAccount(10_000)
			r := &asking{p: s.program, key: key, agree: map[string]int{}}
			x.asks = r.read
			project := s.newProject(key, x.URL+"/asks")
			keys := s.newCheckers(checkers)
			submit := func() string {
				return s.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1, "projectId", project)).text("jobId")
			}
			inParallel(checkers, func(i int) int {
				for range each {
					s.call(http.StatusOK, "POST", "/v1/jobs/"+submit()+"/cancel", key, nil)
					s.completes(keys[i], submit())
				}
				return 0
			})
			eventually.Within(t, eventually.Patience, func() error {
				const n = checkers * each
				agree, wrong := r.all()
				want := map[string]int{"job.created": 2 * n, "job.claimed": n, "job.completed": n, "job.ai_report_ready": n, "job.cancelled": n}
				if len(wrong) == 0 && !maps.Equal(agree, want) {
					return fmt.Errorf("of %v events agree %v", want, agree)
				}
				for _, one := range wrong {
					t.Error(one)
				}
				return nil
			})
		})
	}
}

// completes has a checker test a job of one item.
func (p *program) completes(checker, jobID string) {
	p.t.Helper()
	claim := p.call(http.StatusCreated, "POST", "/v1/checker/claims", checker, map[string]any{"jobId": jobID})
	var list struct{ Checklist []struct{ ID string } }
	must.NoError(p.t, json.Unmarshal(claim.body, &list))
	at, token := "/v1/checker/jobs/"+jobID, claim.text("claimToken")
	p.call(http.StatusOK, "PUT", at+"/items/"+list.Checklist[0].ID, checker, map[string]any{"status": "pass"}, "X-Claim-Token", token)
	p.call(http.StatusOK, "POST", at+"/complete", checker, map[string]any{"summary": "It works."}, "X-Claim-Token", token)
}

func inOneProcess(t *testing.T, x *strangers) *instance {
	return newProgram(t, x.settings()...).start()
}

// rolesApart runs the API with the log, the read models, and the webhooks by themselves.
func rolesApart(t *testing.T, x *strangers) *instance {
	t.Helper()
	log := process.Address(t)
	api := newProgram(t, append(x.settings(), "HUMANQA_ROLES=api", "HUMANQA_EVENTSTORE_LISTEN_INSECURE="+log)...)
	first := api.serve()
	eventually.Within(t, eventually.Patience, func() error {
		_, err := api.try("GET", "/healthz", "", nil)
		return err
	})
	for _, roles := range []string{"projector", "webhooks,policy"} {
		newProgram(t, append(x.settings(), "HUMANQA_ROLES="+roles, "HUMANQA_DATABASE_URL="+api.dsn(), "HUMANQA_BASE_URL="+api.url(""),
			"HUMANQA_MASTER_KEY_FILE="+filepath.Join(api.dir, "master-keyset.json"), "HUMANQA_EVENTSTORE_URL=esdb://"+log+"?tls=false")...).serve()
	}
	first.waitReady()
	return first
}
