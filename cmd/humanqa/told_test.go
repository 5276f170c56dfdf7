package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/subscription"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/hqa/trigger"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/process"
)

var toldDeliveries = flag.Int("told.deliveries", 200, "how many deliveries a receiver reads, at least")

// asking is a receiver that reads what each webhook tells, in the moment in which it has it.
type asking struct {
	p *program

	mu    sync.Mutex
	heard map[string]bool // deliveries
	agree map[string]int  // by event
	late  int             // answers that name a time for another try
	wrong []string
}

// announced is a webhook, as far as it is compared.
type announced struct {
	Event, JobID string
	Data         struct {
		ProjectID, SessionID, LoopSessionID string
		Status, FinalStatus                 string
		ReportID, QuestionID, DisputeID     string
		RequeueCount, Available             int
	}
}

// readAt is where an event can be read, and whether an answer shows it or what came later.
func (e announced) readAt() (path string, shows func(reply) bool) {
	ofJob, session := "/v1/jobs/"+e.JobID, "/v1/hosted/sessions/"+e.Data.SessionID
	is := func(name, want string) func(reply) bool { return func(r reply) bool { return r.text(name) == want } }
	question := func(answered bool) func(reply) bool {
		return func(r reply) bool {
			return holds(r.list("questions"), "id", e.Data.QuestionID) && (!answered || holds(r.list("questions"), "status", "answered"))
		}
	}
	disputed := func(field string) func(reply) bool { // that the dispute has the field
		return func(r reply) bool {
			return slices.ContainsFunc(r.list("disputes"), func(one any) bool {
				d, _ := one.(map[string]any)
				return d["id"] == e.Data.DisputeID && d[field] != nil
			})
		}
	}
	switch e.Event {
	case "job.disputed":
		return ofJob + "/disputes", disputed("id")
	case "job.dispute_answered":
		return ofJob + "/disputes", disputed("answer")
	case "job.dispute_decided":
		return ofJob + "/disputes", disputed("decision")
	case subscription.SubmissionsRefused:
		return "/v1/refusals", func(r reply) bool { return len(r.list("refusals")) > 0 }
	case "job.created":
		return ofJob, is("id", e.JobID)
	case "job.claimed":
		return ofJob, func(r reply) bool { return r.text("status") != "pending" }
	case "job.completed":
		return ofJob + "/report", is("id", e.Data.ReportID)
	case "job.ai_report_ready":
		return ofJob + "/ai-report", is("status", "completed")
	case "job.failed_sla":
		return ofJob, func(r reply) bool {
			return r.number("requeueCount") >= e.Data.RequeueCount && (e.Data.Status == "pending" || r.text("status") == e.Data.Status)
		}
	case "job.cancelled", "job.failed":
		return ofJob, is("status", e.Data.Status)
	case "job.question_asked":
		return ofJob + "/questions", question(false)
	case "job.question_answered":
		return ofJob + "/questions", question(true)
	case "job.session_ready":
		return session, func(r reply) bool { return r.text("status") != "lobby" }
	case "job.session_completed":
		return session, is("status", e.Data.Status)
	case "loop_session.ended":
		return "/v1/loop-sessions/" + e.Data.LoopSessionID, is("status", e.Data.FinalStatus)
	case subscription.WebhookDisabled:
		return "/v1/projects/" + e.Data.ProjectID, func(r reply) bool { return r.field("webhookDisabled") == true }
	case subscription.CreditsLow:
		return "/v1/credits", func(r reply) bool { return r.number("available") <= e.Data.Available }
	}
	return "/v1/events", func(reply) bool { return false }
}

// holds says that one of the objects has the field's value.
func holds(objects []any, name, value string) bool {
	return slices.ContainsFunc(objects, func(one any) bool {
		object, _ := one.(map[string]any)
		return object[name] == value
	})
}

// hear reads with the key in the query. A delivery counts once.
func (a *asking) hear(r *http.Request, body []byte) {
	var e announced
	err := json.Unmarshal(body, &e)
	key := r.URL.Query().Get("key")
	path, shows := e.readAt()
	got, waits := a.read(r.Context(), path, key)
	agrees := err == nil && got.status == http.StatusOK && shows(got)
	if agrees && e.JobID != "" {
		path = "/v1/jobs/" + e.JobID + "/events"
		var more int
		got, more = a.read(r.Context(), path, key)
		waits += more
		agrees = holds(got.list("events"), "event", e.Event)
	}
	if r.Context().Err() != nil {
		return // the sender has hung up, and sends it again
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.late += waits
	switch delivery := r.Header.Get("X-Service-Delivery"); {
	case !agrees:
		a.wrong = append(a.wrong, fmt.Sprintf("%+v: %v %s %d %s", e, err, path, got.status, got.body))
	case !a.heard[delivery]:
		a.heard[delivery] = true
		a.agree[e.Event]++
	}
}

// read asks again as long as the service says so.
func (a *asking) read(ctx context.Context, path, key string) (got reply, waits int) {
	for {
		got, err := a.p.tryIn(ctx, "GET", path, key, nil)
		if err != nil || got.status != http.StatusServiceUnavailable {
			return got, waits
		}
		waits++
	}
}

// count gives the deliveries that agree, by event.
func (a *asking) count() (agree map[string]int, sum int, wrong []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range a.agree {
		sum += n
	}
	return maps.Clone(a.agree), sum, slices.Clone(a.wrong)
}

// Robots play the story of each event until enough deliveries came. In the end the receiver
// has heard of each event once that the feeds of the accounts show.
func TestAReceiverReadsWhatEachWebhookTells(t *testing.T) {
	t.Parallel()
	const players = 4
	for name, start := range map[string]func(*testing.T, *strangers) *instance{"in one process": inOneProcess, "roles apart": rolesApart} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newStrangers(t)
			s := start(t, x)
			a := &asking{p: s.program, heard: map[string]bool{}, agree: map[string]int{}}
			x.asks = a.hear
			var accountID string // the last one's
			keys := make([]string, players+1)
			projects := make([]string, len(keys))
			for i := range keys {
				credits := 100_000
				if i == players {
					credits = 24 // a test leaves few
				}
				accountID, keys[i] = s.newSandbox(credits)
				hook := x.URL + "/asks?key=" + keys[i]
				projects[i] = s.newProject(keys[i], hook)
				s.call(http.StatusCreated, "POST", "/v1/projects", keys[i], map[string]any{
					"name": "operations", "webhookUrl": hook, "subscribedWebhookEvents": subscription.OfAccount(),
				})
			}
			play := func(i int, event string) {
				client, err := humanqa.New(s.url(""), keys[i], "test")
				must.NoError(t, err)
				_, err = trigger.Play(t.Context(), client, event, projects[i])
				must.NoError(t, err)
			}
			play(players, "job.created")
			s.inCore(func(core *service.Core) {
				disabled := s.newProject(keys[players], x.URL+"/asks")
				_, err := core.Commands.DisableWebhook(t.Context(), service.OperatorCause(accountID), disabled, "", "a test")
				must.NoError(t, err)
			})
			disputed := s.disputed(t, keys[players], x.URL+"/asks?key="+keys[players], func(projectID string) {
				client, err := humanqa.New(s.url(""), keys[players], "test")
				must.NoError(t, err)
				_, err = trigger.Play(t.Context(), client, "job.completed", projectID)
				must.NoError(t, err)
			})
			test := map[string]any{"jobType": "Custom", "url": "https://shop.example.com", "title": "Shop", "description": "It works."}
			s.call(http.StatusPaymentRequired, "POST", "/v1/jobs/bulk", keys[players], map[string]any{"jobs": slices.Repeat([]any{test}, 20)})
			inParallel(players, func(i int) int {
				for {
					for _, event := range trigger.Events() {
						if event != trigger.Test {
							play(i, event)
						}
					}
					if _, sum, wrong := a.count(); sum >= *toldDeliveries || len(wrong) > 0 {
						return 0
					}
				}
			})
			eventually.Within(t, eventually.Patience, func() error {
				agree, _, wrong := a.count()
				happened := map[string]int{}
				for _, key := range keys {
					for _, e := range s.events(t, key) {
						event := fmt.Sprint(e["event"])
						if e["jobId"] != disputed || slices.Contains(subscription.Disputes(), event) {
							happened[event]++
						}
					}
				}
				if len(wrong) > 0 {
					t.Fatal(strings.Join(wrong, "\n"))
				}
				if happened[subscription.SubmissionsRefused] == 0 {
					return errors.New("the minute in which tests were refused is not over")
				}
				if !maps.Equal(agree, happened) {
					return fmt.Errorf("of %v events agree %v", happened, agree)
				}
				return nil
			})
			agree, sum, _ := a.count()
			for _, k := range announce.Kinds() {
				if agree[k.Name] == 0 {
					t.Errorf("%s was not told", k.Name)
				}
			}
			t.Logf("%d of %d deliveries agree, %d answers named a time for another try: %v", sum, sum, a.late, agree)
		})
	}
}

// disputed has a verdict disputed, answered and decided, in a project whose webhook names only
// these events.
func (s *instance) disputed(t *testing.T, key, hook string, complete func(projectID string)) (jobID string) {
	t.Helper()
	project := s.call(http.StatusCreated, "POST", "/v1/projects", key, map[string]any{
		"name": "disputes", "webhookUrl": hook, "subscribedWebhookEvents": subscription.Disputes(),
	}).text("projectId")
	complete(project)
	jobs := s.call(http.StatusOK, "GET", "/v1/jobs?projectId="+project, key, nil).list("jobs")
	id := fmt.Sprint(jobs[0].(map[string]any)["id"])
	items := s.call(http.StatusOK, "GET", "/v1/jobs/"+id+"/report", key, nil).list("items")
	dispute := s.call(http.StatusCreated, "POST", "/v1/jobs/"+id+"/disputes", key, map[string]any{
		"itemId": items[0].(map[string]any)["id"], "reason": "It works here.",
	}).text("id")
	s.inCore(func(core *service.Core) {
		st, err := core.Commands.Job(t.Context(), id)
		must.NoError(t, err)
		_, _, err = core.Commands.AnswerDispute(t.Context(), service.OperatorCause(st.AccountID), command.Claim{CheckerID: st.CheckerID, JobID: id}, dispute, "It did not.")
		must.NoError(t, err)
		_, err = core.Commands.RuleDispute(t.Context(), service.OperatorCause(st.AccountID), id, dispute, job.Stands)
		must.NoError(t, err)
	})
	return id
}

// begin runs a service in the test's process, and in one of its own for a torture.
func (p *program) begin() *instance {
	p.t.Helper()
	if *torture {
		return p.launch()
	}
	return p.serve()
}

func inOneProcess(t *testing.T, x *strangers) *instance {
	t.Helper()
	s := newProgram(t, x.settings()...).begin()
	s.waitReady()
	return s
}

// rolesApart runs the API with the log, the read models, and the webhooks by themselves.
func rolesApart(t *testing.T, x *strangers) *instance {
	t.Helper()
	log := process.Address(t)
	front := newProgram(t, append(x.settings(), "HUMANQA_ROLES=api", "HUMANQA_EVENTSTORE_LISTEN_INSECURE="+log)...)
	first := front.begin()
	eventually.Within(t, eventually.Patience, func() error {
		_, err := front.try("GET", "/healthz", "", nil)
		return err
	})
	for _, roles := range []string{"projector", "webhooks,policy"} {
		newProgram(t, append(x.settings(), "HUMANQA_ROLES="+roles, "HUMANQA_DATABASE_URL="+front.dsn(), "HUMANQA_BASE_URL="+front.url(""),
			"HUMANQA_MASTER_KEY_FILE="+filepath.Join(front.dir, "master-keyset.json"), "HUMANQA_EVENTSTORE_URL=esdb://"+log+"?tls=false")...).begin()
	}
	first.waitReady()
	return first
}
