package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain/job"
)

// Decisions, "Job types": both spellings, whatever their case, on
// every endpoint that takes a type; the spelling is echoed, the code beside it.
func TestEveryEndpointTakesAJobTypeInBothSpellingsAndEchoesIt(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100_000)
	patched := s.project(key, `{"name":"patched"}`)
	created := func(path, body, field string) string {
		t.Helper()
		id, _ := s.call(key, "POST", path, body).want(http.StatusCreated)[field].(string)
		return id
	}
	host := func() string { return "https://" + uuid.NewString() + ".example.com/" }
	plain := func(echo string) string { return strings.Replace(aJob, "Payment Flow", echo, 1) }
	ofJob := func(id string) map[string]any {
		t.Helper()
		return s.call(key, "GET", "/v1/jobs/"+id, "").want(http.StatusOK)
	}
	of := func(body map[string]any) [2]any { return [2]any{body["jobType"], body["jobTypeCode"]} }

	five := job.HostedTypes()
	equal(t, five, []job.Type{job.FirstImpression, job.GeneralQA, job.PaymentFlow, job.Custom, job.AIReview})
	people := slices.DeleteFunc(slices.Clone(five), func(t job.Type) bool { return t.Automatic() }) // a review meets nobody
	for _, e := range []struct {
		name  string
		types []job.Type
		path  string // of the problem, when the type is none
		send  func(echo string) result
		read  func(result) [2]any
	}{
		{
			"POST /v1/jobs", job.Types(), "jobType",
			func(echo string) result { return s.call(key, "POST", "/v1/jobs", plain(echo)) },
			func(r result) [2]any { return of(ofJob(r.want(http.StatusCreated)["jobId"].(string))) },
		},
		{
			"POST /v1/estimate", job.Types(), "jobType",
			func(echo string) result { return s.call(key, "POST", "/v1/estimate", plain(echo)) },
			func(r result) [2]any { return of(r.want(http.StatusOK)) },
		},
		{
			"POST /v1/jobs/bulk", job.Types(), "jobs[0].jobType",
			func(echo string) result { return s.call(key, "POST", "/v1/jobs/bulk", `{"jobs":[`+plain(echo)+`]}`) },
			func(r result) [2]any { return of(ofJob(texts(r.want(http.StatusCreated)["jobIds"])[0])) },
		},
		{
			"POST /v1/jobs/:id/retest", job.Types(), "",
			func(echo string) result {
				return s.call(key, "POST", "/v1/jobs/"+created("/v1/jobs", plain(echo), "jobId")+"/retest", "")
			},
			func(r result) [2]any {
				body := r.want(http.StatusCreated)
				equal(t, of(ofJob(body["jobId"].(string))), of(body))
				return of(body)
			},
		},
		{
			"POST /v1/hosted/test", five, "jobType",
			func(echo string) result {
				return s.call(key, "POST", "/v1/hosted/test", `{"url":"`+host()+`","jobType":"`+echo+`"}`)
			},
			func(r result) [2]any {
				body := r.want(http.StatusCreated)
				status := s.call(key, "GET", "/v1/hosted/status/"+body["jobId"].(string), "").want(http.StatusOK)
				equal(t, of(status), of(body))
				return of(body)
			},
		},
		{
			"POST /v1/hosted/sessions", people, "jobType",
			func(echo string) result {
				return s.call(key, "POST", "/v1/hosted/sessions", `{"url":"`+host()+`","slots":[{},{}],"jobType":"`+echo+`"}`)
			},
			func(r result) [2]any {
				body := r.want(http.StatusCreated)
				slots, _ := body["slots"].([]any)
				equal(t, of(ofJob(field(slots, 1, "jobId").(string))), of(body))
				return of(body)
			},
		},
		{
			"POST /v1/projects", job.Types(), "defaultJobType",
			func(echo string) result {
				return s.call(key, "POST", "/v1/projects", `{"name":"n","defaultJobType":"`+echo+`"}`)
			},
			func(r result) [2]any {
				id, _ := r.want(http.StatusCreated)["projectId"].(string)
				return [2]any{s.call(key, "GET", "/v1/projects/"+id, "").want(http.StatusOK)["defaultJobType"]}
			},
		},
		{
			"PATCH /v1/projects/:id", job.Types(), "defaultJobType",
			func(echo string) result {
				return s.call(key, "PATCH", "/v1/projects/"+patched, `{"defaultJobType":"`+echo+`"}`)
			},
			func(r result) [2]any { return [2]any{r.want(http.StatusOK)["defaultJobType"]} },
		},
	} {
		t.Run(e.name, func(t *testing.T) {
			for n, code := range e.types {
				title := code.Title()
				cases := []string{strings.ToUpper(title), strings.ToUpper(string(code)), strings.ToLower(title)}
				for _, echo := range []string{title, string(code), cases[n%len(cases)]} {
					got := e.read(e.send(echo))
					want := [2]any{echo, string(code)}
					if got[1] == nil { // a project shows no code
						want[1] = nil
					}
					equal(t, got, want)
				}
			}
			wrong := []string{"payment-flow", "PaymentFlow", "nope", "payment flow x"}
			if !slices.Contains(e.types, job.AuthFlow) {
				wrong = append(wrong, "auth_flow", "Auth Flow", "form_submission", "Mobile Responsive", "full_user_story")
			}
			if e.path == "" { // takes its type from the job it repeats
				return
			}
			for _, echo := range wrong {
				equal(t, e.send(echo).paths(), []string{e.path})
			}
		})
	}
}
