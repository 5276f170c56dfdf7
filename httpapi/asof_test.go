package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/must"
)

// moment is what was answered right after something happened.
type moment struct {
	cursor  string
	answers map[string]string
}

// Whatever was answered then, asOf answers now: of jobs, reports, a project's
// history and credits, after random histories, by cursor and by time.
func TestAsOfAnswersWhatWasAnsweredThen(t *testing.T) {
	t.Parallel()
	s := setup(t)
	box, key := s.sandbox() // robots, and a clock to move
	_, at, err := s.commands.GrantCredits(t.Context(), operator(uuid.New()), box, 100, nil, "every step may be a submission")
	s.visible(at, err)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // repeatable on purpose
	project := s.project(key, `{"name":"p"}`)
	paths := []string{"/v1/credits", "/v1/projects/" + project + "/history"}
	var jobs []string
	var moments []moment
	record := func() {
		head := s.log.Head()
		s.visible(head, nil)
		m := moment{cursor: fmt.Sprintf("%d-%d", head.Commit, head.Prepare), answers: map[string]string{}}
		for _, path := range paths {
			r := s.call(key, "GET", path, "")
			m.answers[path] = fmt.Sprint(r.Code)
			if r.Code == http.StatusOK {
				m.answers[path] = r.Body.String()
			}
		}
		moments = append(moments, m)
	}
	record()
	for range 40 {
		// Each step has a millisecond of its own.
		s.call(key, "POST", "/v1/sandbox/clock/advance", fmt.Sprintf(`{"seconds":%d}`, 1+dice.IntN(900))).want(http.StatusOK)
		pick := func() string { return jobs[dice.IntN(len(jobs))] }
		switch n := dice.IntN(8); {
		case len(jobs) < 2 || n < 3:
			r := s.call(key, "POST", "/v1/jobs", jobWith(`"projectId":"`+project+`","checklistItems":[{"description":"a"},{"description":"b","severity":"minor"}]`))
			if id, ok := r.want(http.StatusCreated)["jobId"].(string); ok {
				jobs = append(jobs, id)
				paths = append(paths, "/v1/jobs/"+id, "/v1/jobs/"+id+"/report")
			}
		case n < 5:
			s.call(key, "POST", "/v1/sandbox/jobs/"+pick()+"/play", []string{`{"results":[]}`, `{"results":[{"item":"item-1","status":"fail","note":"no"}]}`}[dice.IntN(2)])
		case n == 5:
			s.call(key, "POST", "/v1/jobs/"+pick()+"/cancel", "")
		case n == 6:
			s.call(key, "POST", "/v1/jobs/"+pick()+"/rating", fmt.Sprintf(`{"rating":%d}`, 1+dice.IntN(5)))
		default:
			id := pick()
			s.call(key, "POST", "/v1/hosted/prepare-next", `{"projectId":"`+project+`","fixedDescriptions":["a","`+id+`"]}`)
		}
		record()
	}
	compared := 0
	for i, m := range moments {
		for path, then := range m.answers {
			r := s.call(key, "GET", path+"?asOf="+m.cursor, "")
			if then != "404" {
				var body map[string]any
				if err := json.Unmarshal(r.Body.Bytes(), &body); err != nil || body["asOf"] != m.cursor {
					t.Fatalf("asOf is not echoed: %s", r.Body)
				}
			}
			if got := timeless(t, r.Code, r.Body.Bytes()); got != timeless(t, 200, []byte(then)) {
				t.Errorf("moment %d, %s?asOf=%s:\ngot  %s\nthen %s", i, path, m.cursor, got, then)
			}
			compared++
		}
	}
	if compared < 500 {
		t.Errorf("only %d answers were compared", compared)
	}

	// By time: the end of each step is the answer until the next one begins.
	for i := range moments[:len(moments)-1] {
		var at time.Time
		for _, e := range s.log.All() {
			if fmt.Sprintf("%d-%d", e.Position.Commit, e.Position.Prepare) == moments[i].cursor {
				at = e.Meta.Time
			}
		}
		if at.IsZero() || i == 0 { // what was before the clock moved has times of its own
			continue
		}
		for _, path := range []string{"/v1/projects/" + project + "/history", "/v1/credits"} {
			r := s.call(key, "GET", path+"?asOf="+at.UTC().Format(time.RFC3339Nano), "")
			if got := timeless(t, r.Code, r.Body.Bytes()); got != timeless(t, 200, []byte(moments[i].answers[path])) {
				t.Errorf("moment %d, %s?asOf=%s:\ngot  %s\nthen %s", i, path, at, got, moments[i].answers[path])
			}
		}
	}

	for _, wrong := range []string{"yesterday", "0-0", "2999-01-01", "1-"} {
		for _, path := range paths[:4] {
			equal(t, s.call(key, "GET", path+"?asOf="+wrong, "").paths(), []string{"asOf"})
		}
	}
	for _, path := range paths[1:4] {
		s.call(key, "GET", path+"?asOf=2001-01-01", "").refused(http.StatusNotFound, domain.CodeNotFound)
	}
	_, other := s.account(0)
	for _, path := range paths[1:4] {
		s.call(other, "GET", path+"?asOf="+moments[len(moments)-1].cursor, "").refused(http.StatusNotFound, domain.CodeNotFound)
	}
}

// timeless is an answer without what asOf adds; a refusal is its status.
func timeless(t *testing.T, code int, body []byte) string {
	t.Helper()
	if code != http.StatusOK {
		return fmt.Sprint(code)
	}
	if string(body) == "404" {
		return "404"
	}
	var fields map[string]any
	must.NoError(t, json.Unmarshal(body, &fields))
	maps.DeleteFunc(fields, func(name string, _ any) bool { return name == "asOf" })
	out, err := json.Marshal(fields)
	must.NoError(t, err)
	return string(out)
}
