package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/service"
	"humanqa/internal/service/logging"
	"humanqa/webhooks"
)

type triggerCmd struct {
	Event   string `arg:"" help:"The event, such as job.completed; webhook.test needs no sandbox."`
	Project string `required:"" help:"The project's id. Its account must be a sandbox: robots play the steps that lead to the event."`
}

// triggered is the outcome of the command.
type triggered struct {
	Event      string `json:"event"`
	ProjectID  string `json:"projectId"`
	JobID      string `json:"jobId,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	DeliveryID string `json:"deliveryId,omitempty"` // of a test event
}

// what is the thing that the event is about.
func (t triggered) what() string {
	switch {
	case t.DeliveryID != "":
		return "delivery " + t.DeliveryID
	case t.SessionID != "":
		return "session " + t.SessionID
	}
	return "job " + t.JobID
}

// stories lead to the events, each by the shortest way that the service itself
// would go. Events on the way are sent, too; a test costs the sandbox's credits.
var stories = map[string][]step{
	announce.TestName:       {(*trigger).sendTest},
	"job.created":           {(*trigger).submitJob},
	"job.claimed":           {(*trigger).submitJob, (*trigger).playJob},
	"job.completed":         {(*trigger).submitJob, (*trigger).playJob},
	"job.ai_report_ready":   {(*trigger).submitJob, (*trigger).playJob}, // the analysis follows by itself
	"job.cancelled":         {(*trigger).submitJob, (*trigger).cancelJob},
	"job.failed":            {(*trigger).submitJob, (*trigger).failJob},
	"job.failed_sla":        {(*trigger).submitJob, (*trigger).missSLA},
	"job.session_ready":     {(*trigger).openSession},
	"job.session_completed": {(*trigger).openSession, (*trigger).playSlots},
	"loop_session.ended":    {(*trigger).startLoop, (*trigger).playJob},
}

type step func(*trigger, context.Context) error

// trigger is a story that is being played.
type trigger struct {
	triggered
	core     *service.Core
	operator command.Cause
	slots    []string // the jobs of the session
	at       domain.Position
}

// storySLA is the shortest there is.
const storySLA = 15

const (
	storyURL  = "https://example.com/"
	storyHost = "example.com"
)

// Run plays the story.
func (c *triggerCmd) Run(ctx context.Context, a *app) error {
	story, known := stories[c.Event]
	if !known {
		return fmt.Errorf("there is no event %s: name one of %s", logging.OneLine(c.Event), strings.Join(slices.Sorted(maps.Keys(stories)),
			", "))
	}
	return a.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		cause, st, err := projectOf(ctx, core.Log, c.Project)
		switch {
		case err != nil:
			return err
		case st.WebhookURL == "":
			return fmt.Errorf("project %s has no webhook: humanqa listen --project gives it one", c.Project)
		case !cause.Sandbox && c.Event != announce.TestName:
			return fmt.Errorf("project %s is no sandbox's: take one of an account that was created with --sandbox, or send webhook.test",
				c.Project)
		}
		t := &trigger{triggered: triggered{Event: c.Event, ProjectID: c.Project}, core: core, operator: cause}
		for _, step := range story {
			if err := step(t, ctx); err != nil {
				return err
			}
		}
		core.WaitVisible(ctx, t.at)
		return a.print(t.triggered, "%s: %s", t.Event, t.what())
	})
}

// cause is that of one more command.
func (t *trigger) cause() command.Cause {
	c := t.operator
	c.CommandID = command.NewCommandID()
	return c
}

func (t *trigger) reached(at domain.Position, err error) error {
	t.at = t.at.Max(at)
	return err
}

func (t *trigger) sendTest(ctx context.Context) error {
	id := uuid.New()
	t.DeliveryID = id.String()
	return webhooks.NewLog(t.core.DB).Test(ctx, t.operator.AccountID, t.ProjectID, id, t.core.Clock.Now())
}

func (t *trigger) submission(source string) job.Submission {
	return job.Submission{
		ProjectID: t.ProjectID, URL: storyURL, Title: "humanqa trigger " + t.Event, Feature: "sign in",
		Description: "A test that humanqa trigger plays.", Type: job.GeneralQA, TypeEcho: "General QA", SLAMinutes: storySLA,
		Source: source,
	}
}

func (t *trigger) submitJob(ctx context.Context) error {
	out, err := t.core.Commands.SubmitJob(ctx, t.cause(), command.SubmitJob{
		Submission: t.submission("api"),
		Items: []command.NewItem{
			{Key: "opens", Description: "The page opens", Severity: job.Critical},
			{Key: "sign-in", Description: "Signing in works", Severity: job.Major},
		},
	})
	t.JobID = out.JobID
	return t.reached(out.Position, err)
}

// playJob has a robot claim, check and complete the job. One item fails, so that the
// report shows how that looks.
func (t *trigger) playJob(ctx context.Context) error {
	var first string
	err := t.core.Log.Load(ctx, domain.JobStream(t.JobID), 0, func(r domain.Recorded) error {
		switch e := r.Event.(type) {
		case *job.Created:
			first = firstOf(e.Items, first)
		case *job.ChecklistWritten:
			first = firstOf(e.Items, first)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var results []command.PlayResult
	if first != "" {
		results = []command.PlayResult{{Item: first, Status: job.ItemFail, Note: "The button does nothing."}}
	}
	_, at, err := t.core.Commands.PlayJob(ctx, t.cause(), t.JobID, results, "Played by humanqa trigger.")
	return t.reached(at, err)
}

func firstOf(items []job.Item, otherwise string) string {
	if len(items) == 0 {
		return otherwise
	}
	return items[0].ID
}

func (t *trigger) cancelJob(ctx context.Context) error {
	out, err := t.core.Commands.CancelJob(ctx, t.cause(), t.JobID, job.CancelClient)
	return t.reached(out.Position, err)
}

func (t *trigger) failJob(ctx context.Context) error {
	out, err := t.core.Commands.FailJob(ctx, t.cause(), t.JobID, job.FailUntestable)
	return t.reached(out.Position, err)
}

// missSLA moves the sandbox's clock past the SLA; the running service does the rest.
func (t *trigger) missSLA(ctx context.Context) error {
	out, err := t.core.Commands.AdvanceClock(ctx, t.cause(), storySLA*time.Minute+time.Second)
	return t.reached(out.Position, err)
}

func (t *trigger) openSession(ctx context.Context) error {
	out, err := t.core.Commands.CreateSession(ctx, t.cause(), command.NewSession{
		Test:  command.HostedTest{Submission: t.submission("session"), Host: storyHost},
		Slots: []command.NewSlot{{}, {}}, ScenarioBrief: "Two robots that humanqa trigger plays.",
	})
	if err = t.reached(out.Position, err); err != nil {
		return err
	}
	t.SessionID = out.SessionID
	for _, slot := range out.Slots {
		t.slots = append(t.slots, slot.JobID)
	}
	ready, err := t.core.Commands.ReadySlots(ctx, t.cause(), t.SessionID, nil)
	return t.reached(ready.Position, err)
}

func (t *trigger) playSlots(ctx context.Context) error {
	for _, id := range t.slots {
		t.JobID = id
		if err := t.playJob(ctx); err != nil {
			return err
		}
	}
	t.JobID = ""
	return nil
}

// startLoop begins an agent's loop of one iteration: when its test fails, it is over.
func (t *trigger) startLoop(ctx context.Context) error {
	out, err := t.core.Commands.TestHosted(ctx, t.cause(), command.HostedTest{
		Submission: t.submission("loop"), Host: storyHost,
		Loop: &command.LoopStep{Skill: "humanqa-trigger", Iteration: 1, MaxIterations: 1},
	})
	t.JobID = out.JobID
	return t.reached(out.Position, err)
}
