// Package trigger makes an event happen in a sandbox's project, and so a delivery to its
// webhook. It plays the shortest story that leads there, by the API alone.
package trigger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/backoff"
)

// Told describes the story that was played.
type Told struct {
	Event      string `json:"event"`
	ProjectID  string `json:"projectId"`
	JobID      string `json:"jobId,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	DeliveryID string `json:"deliveryId,omitempty"` // of a test event
}

// About names the thing that the event is about.
func (t Told) About() string {
	switch {
	case t.DeliveryID != "":
		return "delivery " + t.DeliveryID
	case t.SessionID != "":
		return "session " + t.SessionID
	}
	return "job " + t.JobID
}

// Test is the one event that needs no sandbox.
const Test = "webhook.test"

// stories lead to the events, each by the shortest way that the service itself would go.
// Events on the way are sent, too; a test costs the sandbox's credits.
var stories = map[string][]step{
	Test:                    {(*story).sendTest},
	"job.created":           {(*story).submitJob},
	"job.claimed":           {(*story).submitJob, (*story).playJob},
	"job.completed":         {(*story).submitJob, (*story).playJob},
	"job.ai_report_ready":   {(*story).submitJob, (*story).playJob}, // the analysis follows by itself
	"job.cancelled":         {(*story).submitJob, (*story).cancelJob},
	"job.failed":            {(*story).submitJob, (*story).missSLA, (*story).missSLA, (*story).missSLA},
	"job.failed_sla":        {(*story).submitJob, (*story).missSLA},
	"job.question_asked":    {(*story).submitJob, (*story).askInJob}, // the robot waits for an answer
	"job.question_answered": {(*story).submitJob, (*story).askInJob, (*story).answerJob},
	"job.session_ready":     {(*story).openSession},
	"job.session_completed": {(*story).openSession, (*story).playSlots},
	"loop_session.ended":    {(*story).startLoop, (*story).playJob},
}

// Events are those that can be triggered, sorted.
func Events() []string { return slices.Sorted(maps.Keys(stories)) }

type step func(*story, context.Context) error

// story is one that is being played.
type story struct {
	Told
	client   *humanqa.Client
	slots    []string // the jobs of the session
	missed   int      // SLAs
	question string   // of the robot
}

const (
	// sla is the shortest there is, in minutes.
	sla = 15
	// settled bounds the wait until the service has acted on a missed SLA.
	settled   = time.Minute
	lookEvery = time.Second // a key has sixty requests a minute
)

const (
	storyURL = "https://example.com/"
	written  = "A test that hqa trigger plays."
)

// useError says that another command line would do.
type useError struct{ error }

// IsUse says that the event or the project is a wrong one.
func IsUse(err error) bool {
	_, use := errors.AsType[useError](err)
	return use
}

func use(format string, args ...any) error { return useError{fmt.Errorf(format, args...)} }

// Play makes the event happen in the project. Only a sandbox's key plays: another one would
// pay for a test by people.
func Play(ctx context.Context, client *humanqa.Client, event, projectID string) (Told, error) {
	s := &story{Told: Told{Event: event, ProjectID: projectID}, client: client}
	steps, known := stories[event]
	if !known {
		return s.Told, use("there is no event %q: name one of %s", event, strings.Join(Events(), ", "))
	}
	if !client.Sandbox() && event != Test {
		return s.Told, use("the key is no sandbox's (qa_test_…): take one of a sandbox account, or send %s", Test)
	}
	var project struct{ WebhookURL string }
	if err := client.Get(ctx, s.project(), &project); err != nil {
		return s.Told, err
	}
	if project.WebhookURL == "" {
		return s.Told, use("project %s has no webhook: hqa listen --project gives it one", projectID)
	}
	for _, step := range steps {
		if err := step(s, ctx); err != nil {
			return s.Told, err
		}
	}
	return s.Told, nil
}

func (s *story) project() string { return "/v1/projects/" + url.PathEscape(s.ProjectID) }

// write makes a call that has its effect once, however often the network is lost.
func (s *story) write(ctx context.Context, method, path string, body, out any, header map[string]string) error {
	_, err := s.client.Do(ctx, humanqa.Call{Method: method, Path: path, Body: body, Header: header, Key: "hqa-trigger-" + rand.Text()}, out)
	return err
}

func (s *story) post(ctx context.Context, path string, body, out any) error {
	return s.write(ctx, http.MethodPost, path, body, out, nil)
}

func (s *story) job() string { return url.PathEscape(s.JobID) }

func (s *story) sendTest(ctx context.Context) error {
	var sent struct{ ID string }
	err := s.post(ctx, s.project()+"/webhook/test", nil, &sent)
	s.DeliveryID = sent.ID
	return err
}

type item struct {
	Description string `json:"description"`
	Severity    string `json:"severity"`
}

func (s *story) submitJob(ctx context.Context) error {
	var job humanqa.SubmittedJob
	err := s.post(ctx, "/v1/jobs", map[string]any{
		"projectId": s.ProjectID, "url": storyURL, "title": "hqa trigger " + s.Event, "description": written, "jobType": "general_qa",
		"slaMinutes": sla, "checklistItems": []item{{"The page opens", "critical"}, {"Signing in works", "major"}},
	}, &job)
	s.JobID = job.JobID
	return err
}

// playJob has a robot claim, check and complete the job. One item fails, so that the report
// shows how that looks.
func (s *story) playJob(ctx context.Context) error { return s.play(ctx, played(), nil) }

func (s *story) play(ctx context.Context, body map[string]any, out any) error {
	return s.post(ctx, "/v1/sandbox/jobs/"+s.job()+"/play", body, out)
}

func played() map[string]any {
	failing := map[string]string{"item": "item-1", "status": "fail", "note": "The button does nothing."}
	return map[string]any{"results": []any{failing}, "summary": "Played by hqa trigger."}
}

// askInJob has the robot ask first. It goes on with an answer, or once the sandbox's clock
// has passed the question's time.
func (s *story) askInJob(ctx context.Context) error {
	body := played()
	body["question"] = map[string]string{"text": "Which code came by mail?", "kind": "code", "item": "item-2"}
	var asked struct{ Question struct{ ID string } }
	err := s.play(ctx, body, &asked)
	s.question = asked.Question.ID
	return err
}

func (s *story) answerJob(ctx context.Context) error {
	path := "/v1/jobs/" + s.job() + "/questions/" + url.PathEscape(s.question) + "/answer"
	return s.post(ctx, path, map[string]string{"text": "123456"}, nil)
}

func (s *story) cancelJob(ctx context.Context) error {
	return s.post(ctx, "/v1/jobs/"+s.job()+"/cancel", nil, nil)
}

// missSLA moves the sandbox's clock past the SLA, and waits until the service has acted.
func (s *story) missSLA(ctx context.Context) error {
	if err := s.post(ctx, "/v1/sandbox/clock/advance", map[string]int{"seconds": sla*60 + 1}, nil); err != nil {
		return err
	}
	s.missed++
	for began := time.Now(); ; {
		var job humanqa.Job
		if err := s.client.Get(ctx, "/v1/jobs/"+s.job(), &job); err != nil {
			return err
		}
		if job.IsFinal || job.RequeueCount >= s.missed {
			return nil
		}
		if time.Since(began) > settled {
			return fmt.Errorf("job %s did not miss its SLA within %s: run the same command again", s.JobID, settled)
		}
		if err := backoff.Wait(ctx, lookEvery); err != nil {
			return err
		}
	}
}

// hosted submits a hosted test, which finds its project by the URL's host. So the project
// gets a host of its own meanwhile.
func (s *story) hosted(ctx context.Context, submit func(url string) (projectID string, err error)) (err error) {
	var before struct{ DefaultURL *string }
	if err := s.client.Get(ctx, s.project(), &before); err != nil {
		return err
	}
	target := "https://" + strings.ToLower(rand.Text()) + ".example.com/"
	if err := s.setURL(ctx, &target); err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settled)
		defer cancel()
		err = errors.Join(err, s.setURL(ctx, before.DefaultURL))
	}()
	projectID, err := submit(target)
	if err == nil && projectID != s.ProjectID {
		return fmt.Errorf("the test went to project %s", projectID)
	}
	return err
}

func (s *story) setURL(ctx context.Context, to *string) error {
	return s.write(ctx, http.MethodPatch, s.project(), map[string]*string{"defaultUrl": to}, nil, nil)
}

func (s *story) openSession(ctx context.Context) error {
	var session struct {
		SessionID, ProjectID string
		Slots                []struct{ JobID string }
	}
	err := s.hosted(ctx, func(url string) (string, error) {
		err := s.post(ctx, "/v1/hosted/sessions", map[string]any{
			"url": url, "feature": "sign in", "scenarioBrief": written, "slots": []struct{}{{}, {}},
		}, &session)
		return session.ProjectID, err
	})
	if err != nil {
		return err
	}
	s.SessionID = session.SessionID
	for _, slot := range session.Slots {
		s.slots = append(s.slots, slot.JobID)
	}
	return s.post(ctx, "/v1/sandbox/sessions/"+url.PathEscape(s.SessionID)+"/ready", nil, nil)
}

func (s *story) playSlots(ctx context.Context) error {
	for _, id := range s.slots {
		s.JobID = id
		if err := s.playJob(ctx); err != nil {
			return err
		}
	}
	s.JobID = ""
	return nil
}

// startLoop begins an agent's loop of one iteration: when its test fails, it is over.
func (s *story) startLoop(ctx context.Context) error {
	var job humanqa.HostedJob
	err := s.hosted(ctx, func(url string) (string, error) {
		err := s.write(ctx, http.MethodPost, "/v1/hosted/test", map[string]any{"url": url, "feature": "sign in"}, &job, map[string]string{
			"X-Agent-Skill": "hqa-trigger", "X-Agent-Iteration": "1", "X-Agent-Max-Iterations": "1",
		})
		return job.ProjectID, err
	})
	s.JobID = job.JobID
	return err
}
