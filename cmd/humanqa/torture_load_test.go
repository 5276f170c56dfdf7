package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/erase"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/internal/pgpool"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
)

// tortured is a load with agents, erasures, evidence that goes by its age, and mail.
type tortured struct {
	*load
	letters *mailtest.Server
	words   map[string]int // of erased subjects, to the letters that had come by then
	passing []passing
}

// passing is an account that is erased, and one whose evidence goes but for a test that is held.
type passing struct {
	vanishing, aging *client
	goes, held       *erasedJob
}

// with prepares so many accounts that pass, before any checker works, and gives people mail.
func (l *load) with(letters *mailtest.Server, n int) *tortured {
	l.t.Helper()
	x := &tortured{load: l, letters: letters, words: map[string]int{}}
	for i := range n {
		c := passing{vanishing: newClient(l.program, fmt.Sprintf("Vanishing %d Ltd", i)), aging: &client{}}
		for _, job := range l.call(http.StatusOK, "GET", "/v1/jobs", c.vanishing.key, nil).list("jobs") {
			l.vanishing[fmt.Sprint(job.(map[string]any)["id"])] = true
		}
		c.aging.account, c.aging.key = l.newAccount(100)
		project := l.call(http.StatusCreated, "POST", "/v1/projects", c.aging.key, map[string]any{"name": "Shop"}).text("projectId")
		c.goes, c.held = c.aging.testsWithWords(l.program, project, fmt.Sprint("gone", i)), c.aging.testsWithWords(l.program, project, fmt.Sprint("held", i))
		l.cli(nil, "evidence", "hold", "--job", c.held.id, "--reason", "a lawsuit")
		l.cli(nil, "evidence", "keep", "--account", c.aging.account, "--evidence-days", "30", "--reason", "less to keep")
		x.passing = append(x.passing, c)
	}
	for _, id := range l.ids {
		(&client{account: id}).wantsMail(l.program)
	}
	return x
}

func (x *tortured) start() {
	x.load.start()
	for i, key := range x.accounts {
		dice := rand.New(rand.NewPCG(x.dice.Uint64(), 6))
		x.workers.Go(func() { x.agent(i, key, dice) })
	}
	x.workers.Go(x.eraseTests)
}

// pass has the time of one account pass, and another one erased while the load goes on.
func (x *tortured) pass(c passing) {
	x.later(c.aging.account, 31)
	x.workers.Go(func() {
		x.operates(func(ctx context.Context, core *service.Core) error {
			by, err := erase.Open(ctx, core, logging.New("text", core.Config.LogLevel, io.Discard), "Ann", "asked for")
			if err != nil {
				return err
			}
			defer by.Close()
			e, err := erase.New(by, c.vanishing.account)
			if err != nil {
				return err
			}
			return e.Run(ctx)
		})
		x.erased(c.vanishing.name, c.vanishing.person+"@")
	})
}

// eraseTests erases one completed test after the other.
func (x *tortured) eraseTests() {
	for done := map[string]bool{}; x.going(); {
		next := ""
		x.mu.Lock()
		for id := range x.completed {
			if !done[id] && x.jobs[id] != "" && !x.copied[id] {
				next = id
			}
		}
		title := x.titles[next]
		x.erasing[next] = true
		x.mu.Unlock()
		if next == "" {
			time.Sleep(20 * time.Millisecond) // until checkers have completed more
			continue
		}
		done[next] = true
		x.operates(func(ctx context.Context, core *service.Core) error {
			by, err := erase.Open(ctx, core, logging.New("text", core.Config.LogLevel, io.Discard), "Ann", "asked for")
			if err != nil {
				return err
			}
			defer by.Close()
			j, err := erase.NewJob(ctx, by, next)
			if err != nil {
				return err
			}
			found, err := j.Run(ctx)
			if err == nil && len(found.Left) > 0 {
				err = fmt.Errorf("texts are left: %v", found.Left)
			}
			return err
		})
		x.erased(title)
	}
}

// erased notes that no letter has these words from here on.
func (x *tortured) erased(words ...string) {
	letters := len(x.letters.Letters())
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, word := range words {
		x.words[word] = letters
	}
}

// operates does what a command does that joins the running service, again until it succeeds.
// A command would start a service that was just killed, which is the test's to do.
func (l *load) operates(act func(context.Context, *service.Core) error) {
	cfg, err := service.ParseConfig(l.environ)
	must.NoError(l.t, err)
	once := func() error {
		ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
		defer cancel()
		core, err := service.Attach(ctx, cfg, logging.New("text", cfg.LogLevel, io.Discard))
		if err != nil {
			return err
		}
		return errors.Join(act(ctx, core), core.Close(ctx))
	}
	for l.going() { // the blows may fall faster than an erasure searches every table
		if once() == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	eventually.Within(l.t, eventually.Patience, once)
}

// taskOf names a task, and taskState is how it stands.
type (
	taskOf struct {
		sdk.ParamsBase
		TaskID         string               `json:"taskId"`
		InputResponses sdk.InputResponseMap `json:"inputResponses,omitempty"`
	}
	taskState struct {
		sdk.ResultBase
		Status string `json:"status"`
	}
)

// keyed sends a key with each request.
type keyed string

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", "Bearer "+string(k))
	return http.DefaultTransport.RoundTrip(r)
}

// asAgent makes calls over /mcp by the official library, again until they have succeeded.
func (l *load) asAgent(key string, call func(context.Context, *sdk.ClientSession) error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "load", Version: "1"}, nil)
	for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
		if err := sdk.AddSendingCustomMethod[*taskOf, *taskState](c, method); err != nil {
			panic(err) // the names are constants
		}
	}
	eventually.Within(l.t, l.settles, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), l.settles)
		defer cancel()
		session, err := c.Connect(ctx, &sdk.StreamableClientTransport{
			Endpoint: l.url("/mcp"), HTTPClient: &http.Client{Transport: keyed(key)}, DisableStandaloneSSE: true,
		}, nil)
		if err != nil {
			return err
		}
		defer func() { _ = session.Close() }() // nothing to save
		return call(ctx, session)
	})
	l.answers.Add(1)
}

// task makes a call about a task.
func (l *load) task(key, method, id string, answers sdk.InputResponseMap) (status string) {
	l.asAgent(key, func(ctx context.Context, c *sdk.ClientSession) error {
		now, err := sdk.CallCustomMethod[*taskOf, *taskState](ctx, c, method, &taskOf{TaskID: id, InputResponses: answers})
		if err == nil {
			status = now.Status
		}
		return err
	})
	return status
}

func (l *load) answersTask(key, id, question string, answer map[string]any) {
	l.task(key, "tasks/update", id, sdk.InputResponseMap{question: &sdk.ElicitResult{Action: "accept", Content: map[string]any{
		"answer": answer["text"], "secret": answer["secret"],
	}}})
}

// agent is a client that submits by a tool, and cancels some tests and looks at others as tasks.
func (l *load) agent(worker int, key string, dice *rand.Rand) {
	for n := 0; l.going(); n++ {
		title := fmt.Sprintf("Test %s %d of agent %d", l.name, n, worker)
		var made struct{ JobID string }
		l.asAgent(key, func(ctx context.Context, c *sdk.ClientSession) error {
			got, err := c.CallTool(ctx, &sdk.CallToolParams{Name: "test_with_a_human", Arguments: map[string]any{
				"url": "https://example.com/shop", "feature": title, "checks": []string{"The cart works", "A mail arrives"},
				"idempotencyKey": fmt.Sprintf("agent-%d-%d", worker, n),
			}})
			if err != nil {
				return err
			}
			content, err := json.Marshal(got)
			if said := string(content); err == nil && got.IsError && !strings.Contains(said, "abandoned") { // see submitAndCancel
				err = errors.New(said)
			}
			if err != nil || got.IsError {
				return err
			}
			content, err = json.Marshal(got.StructuredContent)
			return errors.Join(err, json.Unmarshal(content, &made))
		})
		if made.JobID == "" {
			continue
		}
		l.mu.Lock()
		l.tasks[made.JobID] = true
		l.mu.Unlock()
		l.note(made.JobID, key, title)
		if dice.IntN(4) == 0 {
			l.task(key, "tasks/cancel", made.JobID, nil)
			if l.task(key, "tasks/get", made.JobID, nil) == "cancelled" {
				l.mu.Lock()
				l.cancelled[made.JobID] = true
				l.mu.Unlock()
			}
		}
	}
}

// check holds what came of it all against what was acknowledged.
func (x *tortured) check() {
	x.t.Helper()
	x.load.check()
	for id := range x.tasks {
		want := map[string]string{"completed": "completed", "cancelled": "cancelled"}[x.ended[id]]
		if got := x.task(x.jobs[id], "tasks/get", id, nil); want != "" && got != want {
			x.t.Errorf("%s is %s, and its task is %s", id, x.ended[id], got)
		}
	}
	x.cli(nil, "evidence", "sweep") // the service looks once a minute
	for _, c := range x.passing {
		x.call(http.StatusUnauthorized, "GET", "/v1/credits", c.vanishing.key, nil)
		x.call(http.StatusGone, "GET", c.goes.picture, "", nil)
		x.call(http.StatusOK, "GET", c.held.picture, "", nil)
	}
	db, err := pgpool.Open(x.t.Context(), x.dsn())
	must.NoError(x.t, err)
	defer func() { _ = db.Close() }()
	x.checkMail(db)
	const most = 50 // each is looked for in every row
	words := slices.Collect(maps.Keys(x.words))
	if in := holding(x.t, db, words[:min(most, len(words))]...); len(in) > 0 {
		x.t.Errorf("words of erased subjects stand in %v", in)
	}
}

// checkMail waits until everything is told. Each report stands in a letter that came, and no
// letter tells of a subject that had been erased.
func (x *tortured) checkMail(db *sqlx.DB) {
	x.t.Helper()
	eventually.Within(x.t, eventually.Patience, func() error {
		x.mails()
		var left int
		if err := db.Get(&left, `SELECT (SELECT count(*) FROM mail.notices WHERE letter_id IS NULL) + (SELECT count(*) FROM mail.letters WHERE state = 'waiting')`); err != nil || left > 0 {
			return fmt.Errorf("%d notices and letters wait: %w", left, err)
		}
		return nil
	})
	came := map[string]bool{}
	for i, l := range x.letters.Letters() {
		id, _, _ := strings.Cut(strings.TrimPrefix(l.Header.Get("Message-Id"), "<"), "@")
		came[id] = true
		for word, before := range x.words {
			if i >= before && strings.Contains(l.Header.Get("Subject")+l.To+l.Body, word) {
				x.t.Errorf("%s was erased, and then a letter to %s told of it", word, l.To)
			}
		}
	}
	var told []struct{ Job, Letter string }
	must.NoError(x.t, db.Select(&told, `SELECT split_part(path, '/', 4) AS job, letter_id AS letter FROM mail.notices WHERE kind = 'report'`))
	letters := map[string]string{}
	for _, n := range told {
		letters[n.Job] = n.Letter
	}
	for id := range x.completed {
		if x.jobs[id] != "" && !came[letters[id]] {
			x.t.Errorf("the report of %s stands in no letter that came (%q)", id, letters[id])
		}
	}
	x.t.Logf("%d words of subjects were erased, %d tests are tasks, %d reports were told in %d letters", len(x.words), len(x.tasks), len(told), len(came))
}

// mails ends the hour between two letters.
func (x *tortured) mails() { x.t.Helper(); x.sql(`UPDATE mail.people SET digest_at = NULL`) }

// hasWorked says that the agents and the operator did something, too.
func (x *tortured) hasWorked() bool {
	if !x.load.hasWorked() {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.words) > 0 && len(x.tasks) > 0
}
