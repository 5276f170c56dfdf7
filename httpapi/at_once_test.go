package httpapi

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"humanqa/internal/testing/commandtest"
)

// beside is another process: an API with commands of its own, on the same log and
// the same database.
func (s *service) beside() *service {
	s.t.Helper()
	commands := s.parts.Process(commandtest.AI{})
	node := s.node(func(d *Deps) { d.Commands = commands })
	node.commands = commands
	return node
}

// Who calls at the same moment as others, at this process or at another one, is
// answered as if alone: with 503 least of all.
func TestTwentyCallsAtOnceOverTwoProcesses(t *testing.T) {
	t.Parallel()
	const n = 20
	s := shared(t)
	nodes := []*service{s, s.beside()}
	_, key := s.account(10_000)
	// atOnce counts the answers' statuses, and gives one field of each answer.
	atOnce := func(field string, request func(node *service, i int) result) (statuses map[int]int, fields []any) {
		t.Helper()
		var (
			mu  sync.Mutex
			all sync.WaitGroup
		)
		statuses = map[int]int{}
		for i := range n {
			all.Go(func() {
				r := request(nodes[i%2], i)
				body := r.want(r.Code)
				mu.Lock()
				defer mu.Unlock()
				statuses[r.Code]++
				if r.Code < 300 {
					fields = append(fields, body[field])
				}
			})
		}
		all.Wait()
		return statuses, fields
	}
	different := func(fields []any) int {
		set := map[any]bool{}
		for _, f := range fields {
			set[f] = true
		}
		return len(set)
	}
	jobs := 0 // that there are
	is := func(what string, statuses, want map[int]int, fields []any, answers, made int) {
		t.Helper()
		jobs += made
		equal(t, fmt.Sprint(what, statuses, different(fields), s.count("job.created"), s.count("credits.debited")),
			fmt.Sprint(what, want, answers, jobs, jobs))
	}
	created := map[int]int{http.StatusCreated: n}

	statuses, ids := atOnce("jobId", func(node *service, _ int) result { return node.call(key, "POST", "/v1/jobs", aJob) })
	is("jobs", statuses, created, ids, n, n)

	hosted := `{"url":"https://shop.replit.app/"}`
	statuses, ids = atOnce("jobId", func(node *service, _ int) result { return node.call(key, "POST", "/v1/hosted/test", hosted) })
	is("hosted tests", statuses, created, ids, n, n)
	equal(t, s.count("project.created"), 1)

	projectID, hook := s.hook(key, withURL)
	statuses, _ = atOnce("", func(node *service, i int) result {
		return node.call(key, "POST", "/v1/hosted/prepare-next", fmt.Sprintf(`{"projectId":%q,"fixedDescriptions":["fix %d"]}`, projectID, i))
	})
	is("fixes", statuses, map[int]int{http.StatusOK: n}, nil, 0, 0)
	equal(t, s.count("project.regressions_prepared"), n)

	parent, _ := ids[0].(string)
	statuses, ids = atOnce("jobId", func(node *service, _ int) result { return node.call(key, "POST", "/v1/jobs/"+parent+"/retest", "") })
	is("retests", statuses, created, ids, n, n)

	statuses, ids = atOnce("jobId", func(node *service, _ int) result { return node.call("", "POST", hook, `{"commitSha":"abc"}`) })
	is("deploys", statuses, map[int]int{http.StatusOK: n - 1, http.StatusCreated: 1}, ids, 1, 1)

	var claimant atomic.Int64
	checkers := make([]string, n)
	for i := range checkers {
		checkers[i] = s.checker()
	}
	statuses, ids = atOnce("jobId", func(node *service, i int) result {
		r := node.call(checkers[i], "POST", "/v1/checker/claims", `{"jobId":"`+parent+`"}`)
		if r.Code == http.StatusCreated {
			claimant.Store(int64(i))
		}
		return r
	})
	is("claims", statuses, map[int]int{http.StatusConflict: n - 1, http.StatusCreated: 1}, ids, 1, 0)

	work := s.claims(checkers[claimant.Load()], parent)
	work.checks(passes)
	statuses, ids = atOnce("reportId", func(node *service, _ int) result {
		w := *work
		w.s = node
		return w.call("POST", "/complete", `{"summary":"done"}`)
	})
	is("completions", statuses, map[int]int{http.StatusOK: n}, ids, 1, 0)
	equal(t, s.count("job.completed"), 1)
}
