package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"humanqa/internal/receiver"
)

// jobRates are jobs a second: few, and as many as keep a processor busy.
var jobRates = []int{20, 200}

// hanging is how many events wait for an endpoint that never answers.
const hanging = 1000

// jobs is part (i). Waiting events are sent, by us and by River; then come jobs with a
// webhook, at fixed rates. Each job is timed from the moment when it was due to its
// event's arrival at the endpoint, which is in this process. The service and its Postgres
// are measured by their processor time, at these rates and at rest.
func jobs(ctx context.Context, b *bench) (_ section, err error) {
	var stops stops
	defer func() { err = errors.Join(err, stops.run(ctx)) }()
	r, err := b.openRivals(ctx, &stops)
	if err != nil {
		return section{}, err
	}
	figures, goals, err := r.drains(ctx, b)
	if err != nil {
		return section{}, err
	}
	s, hook, err := b.openHooked(ctx, &stops)
	if err != nil {
		return section{}, err
	}
	took := max(10*time.Second, 3*b.round)
	if _, err := hook.submitAtRate(ctx, s, jobRates[len(jobRates)-1], took/5); err != nil { // warm-up
		return section{}, err
	}
	out := section{
		Title: "webhooks, beside River with a minimal worker", Figures: figures, Goals: goals,
		Notes: []string{
			fmt.Sprintf("drain: %d deliveries wait, medians of %d rounds; River's worker has no guard, order, log of attempts or cap",
				drained, b.rounds),
			fmt.Sprintf(
				"at a rate: %s each, one endpoint; ours from when a POST /v1/jobs was due to its event's arrival, River's from when a row was due to its answer", took),
			"processor time: of the service and its Postgres for everything that a job leads to; of River's process and Postgres for the webhook alone",
		},
	}
	for _, rate := range jobRates {
		before, err := cpuTime(s.cmd.Process.Pid)
		if err != nil {
			return section{}, err
		}
		got, err := hook.submitAtRate(ctx, s, rate, took)
		if err != nil {
			return section{}, errors.Join(err, s.ifDead(nil))
		}
		after, err := cpuTime(s.cmd.Process.Pid)
		if err != nil {
			return section{}, err
		}
		out.Measurements = append(out.Measurements, summarise("", fmt.Sprintf("%d a second, ours", rate), []sample{got}))
		each := (after - before).Seconds() * 1000 / float64(len(got.latencies))
		out.Figures = append(out.Figures, figure{fmt.Sprintf("processor time for 1,000 jobs at %d a second", rate), each, "s"})
		rivers, cost, err := r.atRate(ctx, rate, took)
		if err != nil {
			return section{}, err
		}
		out.Measurements, out.Figures = append(out.Measurements, rivers), append(out.Figures, cost)
		slow, worst := 15.0, 30.0
		if rate > jobRates[0] {
			slow, worst = 20, 75
		}
		out.Goals = append(out.Goals,
			below(fmt.Sprintf("%d a second, p50", rate), millis(got.quantile(0.5)), slow, "ms"),
			below(fmt.Sprintf("%d a second, p99", rate), millis(got.quantile(0.99)), worst, "ms"))
	}
	before, err := cpuTime(s.cmd.Process.Pid)
	if err != nil {
		return section{}, err
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return section{}, ctx.Err()
	}
	after, err := cpuTime(s.cmd.Process.Pid)
	if err != nil {
		return section{}, err
	}
	out.Figures = append(out.Figures, figure{"processor time at rest", millis(after-before) / took.Seconds(), "ms/s"})

	if err := hook.submitWhatHangs(ctx, s); err != nil {
		return section{}, err
	}
	got, err := hook.submitAtRate(ctx, s, jobRates[0], took)
	if err != nil {
		return section{}, errors.Join(err, s.ifDead(nil))
	}
	name := fmt.Sprintf("%d a second behind %d that hang", jobRates[0], hanging)
	out.Measurements = append(out.Measurements, summarise("", name+", ours", []sample{got}))
	out.Goals = append(out.Goals, below(name+", p99", millis(got.quantile(0.99)), 30, "ms"))
	return out, nil
}

// hooked is an endpoint in this process, and the project that it belongs to.
type hooked struct {
	key, project string
	hangs        string   // a project of the same account, whose endpoint never answers
	arrived      sync.Map // chan struct{} by job, closed when its event comes
}

// at gives the channel that is closed when the job's event arrives.
func (h *hooked) at(jobID string) chan struct{} {
	c, _ := h.arrived.LoadOrStore(jobID, make(chan struct{}))
	return c.(chan struct{})
}

// openHooked starts a service that trusts an endpoint of ours.
func (b *bench) openHooked(ctx context.Context, stops *stops) (*service, *hooked, error) {
	program, err := b.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	dir, err := b.folder("hooked")
	if err != nil {
		return nil, nil, err
	}
	h := &hooked{}
	endpoint, err := receiver.New(ctx, receiver.Config{
		Dir: dir + "/endpoint",
		Received: func(ctx context.Context, r receiver.Delivery) int {
			var about struct{ Data struct{ JobID, Title string } }
			if err := json.Unmarshal(r.Body, &about); err != nil {
				return http.StatusBadRequest
			}
			if about.Data.Title == hangsTitle {
				<-ctx.Done()
				return http.StatusOK
			}
			close(h.at(about.Data.JobID))
			return http.StatusOK
		},
	})
	if err != nil {
		return nil, nil, err
	}
	stops.add(background(ctx, endpoint.Run))
	environ := []string{
		"HUMANQA_DATA_DIR=" + dir + "/data", "HUMANQA_WEBHOOK_ALLOW=127.0.0.0/8", "HUMANQA_WEBHOOK_CA_FILE=" + endpoint.CAFile(),
		"HUMANQA_LOG_FORMAT=json", "HUMANQA_RATE_LIMIT=1000000000",
	}
	running, err := b.startWhole(ctx, program, environ)
	if err != nil {
		return nil, nil, err
	}
	stops.add(running[0].stop)
	s := &service{process: running[0], bench: b, program: program, environ: environ}
	if h.key, err = s.openAccount(ctx, "hooked"); err != nil {
		return nil, nil, err
	}
	for name, id := range map[string]*string{"hooked": &h.project, hangsTitle: &h.hangs} {
		var made struct{ ProjectID string }
		err = s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/projects", h.key, map[string]any{
			"name": name, "webhookUrl": endpoint.URL(), "subscribedWebhookEvents": []string{"job.created"},
		}, &made)
		if err != nil {
			return nil, nil, err
		}
		*id = made.ProjectID
	}
	return s, h, nil
}

// hangsTitle is the title of jobs with an event that is never answered.
const hangsTitle = "hangs"

// submit gives the new job's id.
func (h *hooked) submit(ctx context.Context, s *service, project, title string) (jobID string, err error) {
	var made struct{ JobID string }
	err = s.call(ctx, http.StatusCreated, http.MethodPost, "/v1/jobs", h.key, map[string]any{
		"url": "https://shop.example.com/checkout", "title": title, "description": "Pay by invoice.",
		"jobType": "Payment Flow", "projectId": project,
		"checklistItems": []any{map[string]any{"description": "Invoice is offered", "severity": "major"}},
	}, &made)
	return made.JobID, err
}

func (h *hooked) submitWhatHangs(ctx context.Context, s *service) error {
	return inTurns(ctx, hanging, func(ctx context.Context, _ int) error {
		_, err := h.submit(ctx, s, h.hangs, hangsTitle)
		return err
	})
}

// submitAtRate waits for each job's event.
func (h *hooked) submitAtRate(ctx context.Context, s *service, rate int, took time.Duration) (sample, error) {
	return timedLoop(ctx, rate, took, func(ctx context.Context, _ int) error {
		jobID, err := h.submit(ctx, s, h.project, "Checkout")
		if err != nil {
			return err
		}
		select {
		case <-h.at(jobID):
			return nil
		case <-time.After(callTime):
			return fmt.Errorf("the event of job %s did not come within %s", jobID, callTime)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
