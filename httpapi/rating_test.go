package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
)

// Decisions, "Rating".
func TestAClientRatesTheCheckersWork(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.tested(key, passes)
	rating := func() any {
		return s.call(key, "GET", "/v1/jobs/"+id+"/report", "").want(http.StatusOK)["checkerRating"]
	}
	equal(t, rating(), nil)
	equal(t, s.call(key, "POST", "/v1/jobs/"+id+"/rating", `{"rating":2,"note":"too quick"}`).want(http.StatusOK),
		map[string]any{"jobId": id, "checkerRating": 2.0, "note": "too quick"})
	equal(t, rating(), any(2.0))
	// A later one replaces it.
	equal(t, s.call(key, "POST", "/v1/jobs/"+id+"/rating", `{"rating":5}`).want(http.StatusOK),
		map[string]any{"jobId": id, "checkerRating": 5.0, "note": nil})
	equal(t, rating(), any(5.0))
	s.call(key, "POST", "/v1/jobs/"+id+"/rating", `{"rating":1,"note":"`+strings.Repeat("é", 2000)+`"}`).want(http.StatusOK)
}

func TestWhatARatingMustHold(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	_, other := s.account(0)
	id, pending := s.tested(key, passes), s.submitted(key)
	for body, want := range map[string][]string{
		`{"rating":0}`:                 {"rating"},
		`{"rating":6}`:                 {"rating"},
		`{"rating":-1}`:                {"rating"},
		`{"rating":4.5}`:               {"rating"},
		`{"rating":"5"}`:               {"rating"},
		`{"rating":null}`:              {"rating"},
		`{}`:                           {"rating"},
		`{"rating":true,"note":["x"]}`: {"note", "rating"},
		`{"rating":3,"note":"` + strings.Repeat("é", 2001) + `"}`: {"note"},
		``:   {"body"},
		`[]`: {"body"},
	} {
		equal(t, s.call(key, "POST", "/v1/jobs/"+id+"/rating", body).paths(), want)
	}
	s.call(key, "POST", "/v1/jobs/"+pending+"/rating", `{"rating":5}`).refused(http.StatusConflict, domain.CodeConflict)
	s.call(other, "POST", "/v1/jobs/"+id+"/rating", `{"rating":5}`).refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(key, "POST", "/v1/jobs/"+uuid.NewString()+"/rating", `{"rating":5}`).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.count("job.rated"), 0)
}
