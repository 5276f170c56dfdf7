package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/job"
)

// Decisions, "Prices" and "estimatedCompletionMinutes".
func TestAnEstimateIsWhatTheSubmissionThenCosts(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(7)
	project, _ := s.call(key, "POST", "/v1/projects", `{"name":"Shop","defaultSlaMinutes":15}`).want(http.StatusCreated)["projectId"].(string)
	read := s.key(accountID, command.IssueKey{Scope: account.ScopeRead})
	before := s.written()
	for _, c := range []struct {
		name, body string
		want       map[string]any
	}{
		{"normal", aJob, map[string]any{
			"creditsRequired": 5.0, "creditsAvailable": 7.0, "creditsShort": 0.0, "sufficient": true,
			"estimatedCompletionMinutes": 60.0, "slaMinutes": 60.0, "jobType": "Payment Flow", "jobTypeCode": "payment_flow", "priority": "normal",
		}},
		{"urgent is twice", jobWith(`"priority":"urgent"`), map[string]any{
			"creditsRequired": 10.0, "creditsAvailable": 7.0, "creditsShort": 3.0, "sufficient": false,
			"estimatedCompletionMinutes": 30.0, "slaMinutes": 60.0, "jobType": "Payment Flow", "jobTypeCode": "payment_flow", "priority": "urgent",
		}},
		{"an AI review, urgent, 15 minutes", strings.Replace(jobWith(`"priority":"urgent","slaMinutes":15`), "Payment Flow", "ai_review", 1), map[string]any{
			"creditsRequired": 4.0, "creditsAvailable": 7.0, "creditsShort": 0.0, "sufficient": true,
			"estimatedCompletionMinutes": 7.0, "slaMinutes": 15.0, "jobType": "ai_review", "jobTypeCode": "ai_review", "priority": "urgent",
		}},
		{"the project's default SLA", jobWith(`"projectId":"` + project + `"`), map[string]any{
			"creditsRequired": 5.0, "creditsAvailable": 7.0, "creditsShort": 0.0, "sufficient": true,
			"estimatedCompletionMinutes": 15.0, "slaMinutes": 15.0, "jobType": "Payment Flow", "jobTypeCode": "payment_flow", "priority": "normal",
		}},
	} {
		equal(t, s.call(read, "POST", "/v1/estimate", c.body).want(http.StatusOK), c.want)
	}
	equal(t, s.call(key, "POST", "/v1/estimate", `{"jobType":"nope","priority":"soon"}`).paths(),
		[]string{"description", "jobType", "priority", "title", "url"})
	s.call(key, "POST", "/v1/estimate", jobWith(`"projectId":"`+uuid.NewString()+`"`)).refused(http.StatusNotFound, domain.CodeNotFound)
	equal(t, s.written(), before)
}

func TestThePricesAreShown(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	prices, _ := s.call(key, "GET", "/v1/pricing", "").want(http.StatusOK)["prices"].([]any)
	equal(t, len(prices), len(job.Types()))
	for _, p := range prices {
		row, _ := p.(map[string]any)
		normal := 5.0
		if row["jobTypeCode"] == "ai_review" {
			normal = 2
		}
		code, _ := row["jobTypeCode"].(string)
		equal(t, row, map[string]any{
			"jobType": job.Type(code).Title(), "jobTypeCode": row["jobTypeCode"], "normal": normal, "urgent": 2 * normal,
		})
	}
}
