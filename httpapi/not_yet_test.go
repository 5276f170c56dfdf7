package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// standStill keeps all read models from writing until release is called.
func (s *service) standStill() (release func()) {
	s.t.Helper()
	s.db.SetMaxOpenConns(32) // consumers that wait leave connections to readers, as in a service
	return pgtest.HoldUp(s.t, s.db, "projection_checkpoints")
}

// Each answer is asked for when its event is in the log and in no read model.
func TestNotYetIsSaidOnlyAtTheLogsNewestPosition(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(1000)
	late := s.node(func(d *Deps) {
		d.WaitFor = func(context.Context, domain.Position) error { return context.DeadlineExceeded }
	})
	looked := make(chan struct{}, 1)
	patient := s.node(func(d *Deps) {
		d.Head = func(context.Context) (domain.Position, error) {
			looked <- struct{}{}
			return s.log.Head(), nil
		}
	})
	project := s.project(key, `{"name":"Shop"}`)
	begun := func(fields string) work {
		id := s.submittedWith(key, checklistOf(1)+fields)
		w := s.claims(s.checker(), id).checks(fails)
		w.s = late
		return *w
	}
	completed := begun("")
	completed.completes("Tested.")
	analyse := func(jobID string) {
		_, err := s.commands.AnalyseJob(t.Context(), command.Cause{CommandID: uuid.New(), Actor: "policy:analyse", AccountID: accountID}, jobID)
		must.NoError(t, err)
	}
	created := func(path, body, id string) string {
		made, _ := late.call(key, "POST", path, body).want(http.StatusCreated)[id].(string)
		return made
	}
	reported, analysed, prepared := begun(""), begun(""), begun(`,"projectId":"`+project+`"`)
	batch := s.call(key, "POST", "/v1/jobs/bulk", bulkOf(1, nil)).want(http.StatusCreated)
	type ask struct{ method, path, body string }
	for what, happens := range map[string]func() ask{
		"a job":               func() ask { return ask{"GET", "/v1/jobs/" + late.submitted(key), ""} },
		"a job's status":      func() ask { return ask{"GET", "/v1/hosted/status/" + late.submitted(key) + "?wait=1", ""} },
		"a job's events":      func() ask { return ask{"GET", "/v1/jobs/" + late.submitted(key) + "/events", ""} },
		"a job to cancel":     func() ask { return ask{"POST", "/v1/jobs/" + late.submitted(key) + "/cancel", ""} },
		"a job to test again": func() ask { return ask{"POST", "/v1/jobs/" + late.submitted(key) + "/retest", ""} },
		"a report": func() ask {
			reported.completes("Tested.")
			return ask{"GET", "/v1/jobs/" + reported.jobID + "/report", ""}
		},
		"an AI report of a job that was not completed": func() ask {
			analysed.completes("Tested.")
			analyse(analysed.jobID)
			return ask{"GET", "/v1/jobs/" + analysed.jobID + "/ai-report", ""}
		},
		"an AI report": func() ask {
			analyse(completed.jobID)
			return ask{"GET", "/v1/jobs/" + completed.jobID + "/ai-report", ""}
		},
		"a batch": func() ask {
			return ask{"GET", "/v1/jobs/bulk/" + created("/v1/jobs/bulk", bulkOf(1, nil), "batchId"), ""}
		},
		"a batch's report": func() ask {
			late.call(key, "POST", fmt.Sprintf("/v1/jobs/%s/cancel", batch["jobIds"].([]any)[0]), "").want(http.StatusOK)
			return ask{"GET", fmt.Sprintf("/v1/jobs/bulk/%s/report", batch["batchId"]), ""}
		},
		"a project": func() ask {
			return ask{"GET", "/v1/projects/" + created("/v1/projects", `{"name":"Other"}`, "projectId"), ""}
		},
		"a session": func() ask {
			return ask{"GET", "/v1/hosted/sessions/" + created("/v1/hosted/sessions", twoSlots, "sessionId"), ""}
		},
		"an item that failed": func() ask {
			prepared.completes("Tested.")
			return ask{"POST", "/v1/hosted/prepare-next", `{"projectId":"` + project + `","fixedBugIds":["` + prepared.items[0] + `"]}`}
		},
	} {
		s.visible(s.log.Head(), nil)
		select {
		case <-looked: // by a repeat of the one before
		default:
		}
		release := s.standStill()
		of := happens()
		early := late.call(key, of.method, of.path, of.body)
		early.refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
		equal(t, early.Header().Get("Retry-After"), "1")
		answers := make(chan result)
		go func() {
			end := time.Now().Add(eventually.Patience)
			got := patient.call(key, of.method, of.path, of.body)
			for got.Code == http.StatusServiceUnavailable && time.Now().Before(end) { // on a busy machine a read before the look takes too long
				got = patient.call(key, of.method, of.path, of.body)
			}
			answers <- got
		}()
		select {
		case got := <-answers:
			t.Errorf("%s: it was not looked for once more: %d %s", what, got.Code, got.Body)
		case <-looked:
			release()
			if got := <-answers; got.Code != http.StatusOK && got.Code != http.StatusCreated {
				t.Errorf("%s: %d %s", what, got.Code, got.Body)
			}
			continue
		}
		release()
	}
	s.call(key, "GET", "/v1/jobs/"+uuid.NewString(), "").refused(http.StatusNotFound, domain.CodeNotFound)
}

// A page that is not the last one denies nothing.
func TestTheEndOfTheFeedIsNotToldWhileTheFeedIsBehind(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	id := s.submitted(key)
	s.submitted(key)
	s.feed(key, "/v1/events", 2)
	late := s.node(func(d *Deps) { d.FeedShown = func(context.Context) error { return context.DeadlineExceeded } })
	for _, path := range []string{"/v1/events", "/v1/jobs/" + id + "/events", "/v1/refusals"} {
		late.call(key, "GET", path, "").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	}
	late.call(key, "GET", "/v1/events?limit=1", "").want(http.StatusOK)
}

func TestAFinalAnswerDoesNotLookForTheLogsEnd(t *testing.T) {
	t.Parallel()
	s := shared(t).node(func(d *Deps) {
		d.Head = func(context.Context) (domain.Position, error) {
			t.Error("the log was asked for its newest position")
			return domain.Position{}, nil
		}
	})
	accountID, key := s.account(100)
	waiting, done := s.submitted(key), s.tested(key, passes)
	s.analysed(accountID, done)
	for _, path := range []string{"/v1/jobs", "/v1/jobs/" + waiting, "/v1/jobs/" + done, "/v1/hosted/status/" + done, "/v1/jobs/" + done + "/report",
		"/v1/jobs/" + done + "/ai-report"} {
		s.call(key, "GET", path, "").want(http.StatusOK)
	}
}
