package httpapi

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/internal/testing/must"
)

// iterate submits a hosted test as an agent does.
func (s *service) iterate(key, skill string, n int) (projectID, jobID string) {
	s.t.Helper()
	body := s.call(key, "POST", "/v1/hosted/test", `{"url":"https://shop.example"}`,
		"X-Agent-Skill", skill, "X-Agent-Iteration", strconv.Itoa(n)).want(http.StatusCreated)
	projectID, _ = body["projectId"].(string)
	jobID, _ = body["jobId"].(string)
	return projectID, jobID
}

// loopOf finds the session that runs. Agents are told it with each test.
func (s *service) loopOf(projectID, skill string) (id string) {
	s.t.Helper()
	err := s.db.GetContext(s.t.Context(), &id,
		"SELECT id FROM readmodel.loop_sessions WHERE loop_id = $1 AND status = 'running'", command.LoopID(projectID, skill))
	must.NoError(s.t, err)
	return id
}

func TestAnAgentsLoop(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	project, first := s.iterate(key, "fix-shop", 1)
	_, second := s.iterate(key, "fix-shop", 2)
	loopID := s.loopOf(project, "fix-shop")

	got := s.call(key, "GET", "/v1/loop-sessions/"+loopID, "").want(http.StatusOK)
	for _, at := range []string{"startedAt", "lastSeenAt"} {
		if got[at] == nil {
			t.Errorf("%s is missing", at)
		}
		delete(got, at)
	}
	want := map[string]any{
		"id": loopID, "projectId": project, "skill": "fix-shop", "status": "running", "iterations": 2.0, "maxIterations": 10.0,
		"creditsSpent": 10.0, "finalReportId": nil, "failingKeys": []any{}, "jobIds": []any{first, second}, "endedAt": nil,
	}
	equal(t, got, want)

	t.Run("knows what became of its tests", func(t *testing.T) {
		s.call(key, "POST", "/v1/jobs/"+first+"/cancel", "").want(http.StatusOK)
		at, err := s.commands.RecordLoopOutcome(t.Context(), command.Cause{CommandID: uuid.New(), Actor: "policy:test"},
			command.LoopID(project, "fix-shop"), first)
		s.visible(at, err)
		got := s.call(key, "GET", "/v1/loop-sessions/"+loopID, "").want(http.StatusOK)
		equal(t, got["creditsSpent"], any(5.0))
	})
	t.Run("is another account's business no more than its project's key's", func(t *testing.T) {
		_, stranger := s.account(0)
		bound := s.key(accountID, command.IssueKey{Scope: account.ScopeFull, ProjectID: s.project(key, `{"name":"Other"}`)})
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/v1/loop-sessions/" + loopID, ""},
			{"POST", "/v1/loop-sessions/" + loopID + "/finalize", `{"finalStatus":"passed"}`},
		} {
			s.call(stranger, c.method, c.path, c.body).refused(http.StatusNotFound, domain.CodeNotFound)
			s.call(bound, c.method, c.path, c.body).refused(http.StatusForbidden, domain.CodeForbidden)
		}
		s.call(key, "GET", "/v1/loop-sessions/"+uuid.NewString(), "").refused(http.StatusNotFound, domain.CodeNotFound)
		s.call(key, "GET", "/v1/loop-sessions/a%2Fb", "").refused(http.StatusNotFound, domain.CodeNotFound)
	})
	t.Run("is finalized once", func(t *testing.T) {
		finalize := "/v1/loop-sessions/" + loopID + "/finalize"
		for _, body := range []string{`{}`, `{"finalStatus":""}`, `{"finalStatus":"running"}`, `{"finalStatus":"done"}`, `{"finalStatus":1}`} {
			equal(t, s.call(key, "POST", finalize, body).paths(), []string{"finalStatus"})
		}
		ended := s.call(key, "POST", finalize, `{"finalStatus":"abandoned"}`).want(http.StatusOK)
		if ended["status"] != "abandoned" || ended["endedAt"] == nil {
			t.Errorf("the loop is %v", ended)
		}
		equal(t, s.call(key, "POST", finalize, `{"finalStatus":"abandoned"}`).want(http.StatusOK), ended)
		s.call(key, "POST", finalize, `{"finalStatus":"passed"}`).refused(http.StatusConflict, domain.CodeConflict)
	})
	t.Run("and followed by the next", func(t *testing.T) {
		s.iterate(key, "fix-shop", 3)
		if next := s.loopOf(project, "fix-shop"); next == loopID {
			t.Error("a finalized loop goes on")
		}
	})
}
