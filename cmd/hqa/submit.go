package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"humanqa/cmd/hqa/pipeline"
	"humanqa/cmd/hqa/store"
	"humanqa/integrations/clients/go/humanqa"
)

// consent is how the price is agreed to.
type consent struct {
	Yes        bool   `short:"y" help:"Pay without being asked. A pipeline is not asked."`
	MaxCredits *int64 `help:"Refuse a higher price (exit 3); 0 refuses each. It is also consent to any price up to this."`
	Again      bool   `help:"In a pipeline: let each attempt of the step pay for a test of its own. Without it a repeat finds the first one."`
}

// price is the cost of a submission.
type price struct {
	Credits   int64 `json:"credits"`
	AtMost    bool  `json:"atMost,omitempty"` // the service finds the type, and so the price
	Available int64 `json:"creditsAvailable"`
	Minutes   int   `json:"estimatedCompletionMinutes"`
	Tests     int   `json:"tests"`
	Items     int   `json:"items,omitempty"`               // of the files' own checklists
	Generated int   `json:"generatedChecklists,omitempty"` // of files without an item
}

// checklists says what the tests of files consist of.
func (p price) checklists() (told string) {
	if p.Items > 0 {
		told = "; " + count(p.Items, "item")
	}
	if p.Generated > 0 {
		told += "; the service writes " + count(p.Generated, "checklist")
	}
	return told
}

// count is a number of things, in words: 1 test, 2 tests.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprint(n, " ", thing)
}

// agree shows the price before it is paid, and asks a person who is there.
func (c consent) agree(a *app, p price) error {
	upTo := ""
	if p.AtMost {
		upTo = "at most "
	}
	if a.json {
		if err := a.line(struct {
			Type string `json:"type"`
			price
		}{"price", p}); err != nil {
			return err
		}
	} else {
		a.say("%s: %s%d credits of %d, about %d minutes%s", count(p.Tests, "test"), upTo, p.Credits, p.Available, p.Minutes, p.checklists())
	}
	switch {
	case c.MaxCredits != nil && *c.MaxCredits < 0:
		return usage("--max-credits must not be negative: nothing was submitted")
	case c.MaxCredits != nil && p.Credits > *c.MaxCredits:
		return refused("the price of %s%d credits is above --max-credits %d: nothing was submitted", upTo, p.Credits, *c.MaxCredits)
	case c.Yes || c.MaxCredits != nil || pipeline.Find(a.env, false).Known():
		return nil
	case !a.terminal:
		return usage("add --yes, or --max-credits %d: there is no terminal to ask at, and nothing was submitted", p.Credits)
	}
	a.say("Submit? [y/N]")
	word, _ := bufio.NewReader(a.in).ReadString('\n') // without an answer it is no
	if word = strings.ToLower(strings.TrimSpace(word)); word != "y" && word != "yes" {
		return usage("nothing was submitted")
	}
	return nil
}

// unsettledFor is how long a submission whose answer did not arrive keeps its
// Idempotency-Key: the service keeps keys for a day.
const unsettledFor = 20 * time.Hour

// submit makes a call that charges, and reads its answer into out. Its Idempotency-Key is
// that of the pipeline's step, or one that stays on record here until the verdict was
// told. So the same command continues after a killed client, or a wait that ran out. A
// first Ctrl-C does not cut the call off.
func (a *app) submit(
	ctx context.Context, client *humanqa.Client, c consent, call humanqa.Call, out any,
) (replayed bool, err error) {
	raw, err := identity(call)
	if err != nil {
		return false, err
	}
	run := pipeline.Find(a.env, c.Again)
	key := run.Key(call.Path, raw)
	name := ""
	if !run.Known() {
		name = nameOf(client, call, raw)
		if key, err = a.unsettled(name, c.Again); err != nil {
			return false, err
		}
	}
	call.Method, call.Key = http.MethodPost, key
	answer, err := client.Do(context.WithoutCancel(ctx), call, nil)
	if err != nil {
		if !humanqa.Passing(err) {
			a.settle(func(submission string, _ store.Unsettled) bool { return submission == name })
		}
		return false, err
	}
	ids := jobsIn(answer.Raw)
	if err := json.Unmarshal(answer.Raw, out); err != nil || len(ids) == 0 {
		return false, fmt.Errorf("%s did not answer as the service does: the answer names no job", client.Base())
	}
	if name != "" {
		a.changeRun(func(r *store.Run) {
			r.Unsettled[name] = store.Unsettled{Key: key, At: time.Now().UTC(), JobIDs: ids}
		})
	}
	return answer.Replayed, nil
}

// jobsIn are the jobs that an answer to a submission names.
func jobsIn(raw []byte) []string {
	var made struct {
		JobID  string
		JobIDs []string
	}
	if json.Unmarshal(raw, &made) == nil && made.JobID != "" {
		return []string{made.JobID}
	}
	return made.JobIDs
}

// identity tells submissions apart: it is the body with the step of a loop. It leaves out
// a token, because each attempt of a step has a new one.
func identity(call humanqa.Call) ([]byte, error) {
	raw, err := json.Marshal(call.Body)
	for _, name := range []string{skillHeader, iterationHeader, maxIterationsHeader} {
		if value := call.Header[name]; value != "" {
			raw = append(raw, "\n"+name+": "+value...)
		}
	}
	return raw, err
}

// nameOf is the submission's name on record here.
func nameOf(client *humanqa.Client, call humanqa.Call, identity []byte) string {
	return pipeline.Run{}.Key(client.Base()+call.Path, identity)
}

// isRepeat says that the submission is on record here, and its verdict was not told yet.
func (a *app) isRepeat(client *humanqa.Client, call humanqa.Call) bool {
	raw, err := identity(call)
	last, errRun := a.store.LastRun(a.dir)
	_, known := last.Unsettled[nameOf(client, call, raw)]
	return err == nil && errRun == nil && known
}

// unsettled is the key on record for the submission, or a new one that it records.
func (a *app) unsettled(name string, again bool) (key string, err error) {
	last, err := a.store.LastRun(a.dir)
	if err != nil {
		return "", err
	}
	if known, found := last.Unsettled[name]; found && !again && time.Since(known.At) < unsettledFor {
		return known.Key, nil
	}
	key = newKey()
	last.Unsettled[name] = store.Unsettled{Key: key, At: time.Now().UTC()}
	return key, a.store.KeepRun(a.dir, last)
}

// newKey is an Idempotency-Key for one call.
func newKey() string { return "hqa-" + rand.Text() }

// settle forgets submissions: they were refused, or their verdict was told.
func (a *app) settle(over func(name string, u store.Unsettled) bool) {
	a.changeRun(func(r *store.Run) {
		maps.DeleteFunc(r.Unsettled, over)
	})
}

// verdictTold settles the submissions of jobs whose verdict was told.
func (a *app) verdictTold(ids []string) {
	a.settle(func(_ string, u store.Unsettled) bool {
		return len(u.JobIDs) > 0 && !slices.ContainsFunc(u.JobIDs, func(id string) bool { return !slices.Contains(ids, id) })
	})
}

// changeRun changes the record of this directory. The test runs without it, too.
func (a *app) changeRun(change func(*store.Run)) {
	last, err := a.store.LastRun(a.dir)
	if err == nil {
		change(&last)
		err = a.store.KeepRun(a.dir, last)
	}
	if err != nil {
		a.say("hqa: the run is not remembered here: %s", oneLine(err.Error()))
	}
}

// remember keeps what was submitted, for commands without an id.
func (a *app) remember(client *humanqa.Client, r store.Run) {
	a.changeRun(func(last *store.Run) {
		r.Service, r.At, r.Unsettled, r.Loops = client.Base(), time.Now().UTC(), last.Unsettled, last.Loops
		*last = r
	})
}

// lastRun is the last submission of this directory.
func (a *app) lastRun(client *humanqa.Client) (store.Run, error) {
	last, err := a.store.LastRun(a.dir)
	switch {
	case err != nil:
		return last, err
	case len(last.JobIDs) == 0:
		return last, usage("nothing was submitted from %s yet: name the job", a.dir)
	case last.Service != client.Base():
		return last, usage("the last run of this directory was at %s: name the job", last.Service)
	}
	return last, nil
}

type testCmd struct {
	URL        string `arg:"" help:"The URL to test."`
	Feature    string `help:"The focus of the test; the checklist is made for it."`
	Type       string `help:"The type of test, such as general_qa or payment_flow; without it the service finds it."`
	Priority   string `enum:"normal,urgent" default:"normal" help:"normal or urgent, which costs twice as much."`
	Device     string `help:"The device to test on, such as iPhone 15."`
	Access     string `type:"existingfile" help:"A file that says how to reach protected parts, such as a login of a test account."`
	loopStep   `embed:""`
	waiting    `embed:""`
	consent    `embed:""`
	committing `embed:""`
}

// hosted is the body of a hosted test.
type hosted struct {
	URL                string `json:"url"`
	Feature            string `json:"feature,omitempty"`
	JobType            string `json:"jobType,omitempty"`
	Priority           string `json:"priority,omitempty"`
	TargetDevice       string `json:"targetDevice,omitempty"`
	AccessInstructions string `json:"accessInstructions,omitempty"`

	CommitStatus *commitStatus `json:"commitStatus,omitempty"`
}

// Run submits a hosted test.
func (c *testCmd) Run(ctx context.Context, a *app, client *humanqa.Client) (err error) {
	if err := c.check(a); err != nil {
		return err
	}
	body := hosted{URL: c.URL, Feature: c.Feature, JobType: c.Type, Priority: c.Priority, TargetDevice: c.Device}
	if c.Access != "" {
		raw, err := os.ReadFile(c.Access)
		if err != nil {
			return usage("%w", err)
		}
		body.AccessInstructions = string(raw)
	}
	var token map[string]string
	if body.CommitStatus, token, err = c.atCommit(a, c.FailOn); err != nil {
		return err
	}
	call := humanqa.Call{Path: "/v1/hosted/test", Body: body, Header: c.headers()}
	maps.Copy(call.Header, token)
	if err := c.mayGoOn(ctx, a, client, call); err != nil {
		return err
	}
	cost, err := hostedPrice(ctx, client, body)
	if err != nil {
		return err
	}
	if err := c.agree(a, cost); err != nil {
		return err
	}
	var job humanqa.HostedJob
	replayed, err := a.submit(ctx, client, c.consent, call, &job)
	if err != nil {
		return err
	}
	a.remember(client, store.Run{JobIDs: []string{job.JobID}})
	a.rememberLoop(c.Loop, humanqa.Value(job.LoopSessionID))
	return c.follow(ctx, a, client, submission{JobIDs: []string{job.JobID}, Credits: job.CreditsDeducted, Replayed: replayed})
}

// detected are the types that the service may find for a hosted test.
var detected = []string{"first_impression", "general_qa", "payment_flow"}

// hostedPrice is the price of a hosted test: of its type, or the highest of those that the
// service may find.
func hostedPrice(ctx context.Context, client *humanqa.Client, body hosted) (price, error) {
	types := detected
	if body.JobType != "" {
		types = []string{body.JobType}
	}
	p := price{Tests: 1}
	var prices []int64
	for _, t := range types {
		e, err := estimate(ctx, client, newJob{
			URL: body.URL, Title: "Estimate", Description: "Estimate", JobType: t, Priority: body.Priority,
		})
		if err != nil {
			return p, err
		}
		p.Credits, p.Available = max(p.Credits, e.CreditsRequired), e.CreditsAvailable
		p.Minutes = max(p.Minutes, e.EstimatedCompletionMinutes)
		prices = append(prices, e.CreditsRequired)
	}
	p.AtMost = len(slices.Compact(prices)) > 1
	return p, nil
}

// newJob is the body of a job.
type newJob struct {
	URL            string    `json:"url"`
	Title          string    `json:"title"`
	Description    string    `json:"description"`
	JobType        string    `json:"jobType"`
	Priority       string    `json:"priority,omitempty"`
	ProjectID      string    `json:"projectId,omitempty"`
	SLAMinutes     int       `json:"slaMinutes,omitempty"`
	ChecklistItems []newItem `json:"checklistItems,omitempty"`
	TargetDevice   string    `json:"targetDevice,omitempty"`
	TargetOS       string    `json:"targetOS,omitempty"`
	TargetBrowser  string    `json:"targetBrowser,omitempty"`
}

type newItem struct {
	Description     string `json:"description"`
	ExpectedOutcome string `json:"expectedOutcome,omitempty"`
	Severity        string `json:"severity,omitempty"`
}

func estimate(ctx context.Context, client *humanqa.Client, body newJob) (humanqa.Estimate, error) {
	var e humanqa.Estimate
	_, err := client.Do(ctx, humanqa.Call{Method: http.MethodPost, Path: "/v1/estimate", Body: body, Safe: true}, &e)
	return e, err
}

type retestCmd struct {
	Jobs    []string `arg:"" optional:"" name:"job" help:"The jobs; without one, what did not pass in the last run of this directory."`
	waiting `embed:""`
	consent `embed:""`
}

// Run submits the jobs once more.
func (c *retestCmd) Run(ctx context.Context, a *app, client *humanqa.Client) error {
	if err := c.check(a); err != nil {
		return err
	}
	step := ""
	if run := pipeline.Find(a.env, c.Again); run.Known() {
		step = run.Key("retest", nil)
	}
	ids, files := c.Jobs, map[string]string{}
	if len(ids) == 0 {
		last, err := a.lastRun(client)
		if err != nil {
			return err
		}
		if ids, err = retested(ctx, client, last, step); err != nil {
			return err
		}
		if files = last.Files; len(ids) == 0 {
			a.say("everything passed in the last run: there is nothing to test again")
			return nil
		}
	}
	cost := price{Tests: len(ids)}
	for _, id := range ids {
		j, err := readJob(ctx, client, id)
		if err != nil {
			return err
		}
		e, err := estimate(ctx, client, newJob{
			URL: j.URL, Title: j.Title, Description: "Estimate", JobType: j.JobType, Priority: string(j.Priority),
		})
		if err != nil {
			return err
		}
		cost.Credits += e.CreditsRequired
		cost.Available, cost.Minutes = e.CreditsAvailable, max(cost.Minutes, e.EstimatedCompletionMinutes)
	}
	if err := c.agree(a, cost); err != nil {
		return err
	}
	out := submission{Replayed: true}
	kept := store.Run{Of: ids, Step: step, Files: map[string]string{}}
	for _, id := range ids {
		var job humanqa.RetestedJob
		replayed, err := a.submit(ctx, client, c.consent, humanqa.Call{Path: "/v1/jobs/" + url.PathEscape(id) + "/retest"}, &job)
		if err != nil {
			return err
		}
		out.JobIDs = append(out.JobIDs, job.JobID)
		out.Credits += job.CreditsDeducted
		out.Replayed = out.Replayed && replayed
		if file := files[id]; file != "" {
			kept.Files[id], kept.Files[job.JobID] = file, file
		}
	}
	kept.JobIDs, a.files = out.JobIDs, kept.Files
	a.remember(client, kept)
	return c.follow(ctx, a, client, out)
}

// retested are the jobs of the last run that ended without passing. If the last run is a
// retest that was cut off, or one of the same step of a pipeline, they are the jobs that
// it retested. So the same command continues it.
func retested(ctx context.Context, client *humanqa.Client, last store.Run, step string) (ids []string, err error) {
	if len(last.Of) > 0 && step != "" && last.Step == step {
		return last.Of, nil
	}
	for _, u := range last.Unsettled {
		if len(last.Of) > 0 && slices.ContainsFunc(u.JobIDs, func(id string) bool { return slices.Contains(last.JobIDs, id) }) {
			return last.Of, nil
		}
	}
	for _, id := range last.JobIDs {
		j, err := readJob(ctx, client, id)
		if err != nil {
			return nil, err
		}
		switch {
		case !j.IsFinal:
			return nil, usage("job %s of the last run has not ended: run hqa wait, or name the job to test again", id)
		case j.OverallStatus == nil || *j.OverallStatus != "pass":
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func readJob(ctx context.Context, client *humanqa.Client, id string) (humanqa.Job, error) {
	var j humanqa.Job
	return j, client.Get(ctx, "/v1/jobs/"+url.PathEscape(id), &j)
}
