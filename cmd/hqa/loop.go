package main

import (
	"context"
	"net/url"
	"strconv"

	"humanqa/cmd/hqa/store"
	"humanqa/integrations/clients/go/humanqa"
)

// loopStep says that a test is a step of an agent's loop, which the service counts.
type loopStep struct {
	Loop          string `placeholder:"NAME" help:"The agent's loop that this test is a step of. The service counts its steps and credits."`
	Iteration     int    `placeholder:"N" help:"The step of the loop, from 1, which begins a new loop."`
	MaxIterations *int   `placeholder:"N" help:"With step 1: how many steps the loop may have, from 1. Without it 10."`
}

// The headers that say it to the service.
const (
	skillHeader         = "X-Agent-Skill"
	iterationHeader     = "X-Agent-Iteration"
	maxIterationsHeader = "X-Agent-Max-Iterations"
)

func (l loopStep) headers() map[string]string {
	headers := map[string]string{}
	if l.Loop == "" {
		return headers
	}
	headers[skillHeader], headers[iterationHeader] = l.Loop, strconv.Itoa(l.Iteration)
	if l.MaxIterations != nil {
		headers[maxIterationsHeader] = strconv.Itoa(*l.MaxIterations)
	}
	return headers
}

// mayGoOn refuses a further step of a loop that has ended: the service would begin a new one, with
// a new budget.
func (l loopStep) mayGoOn(ctx context.Context, a *app, client *humanqa.Client, call humanqa.Call) error {
	switch {
	case l.Loop == "" && (l.Iteration != 0 || l.MaxIterations != nil):
		return usage("--iteration and --max-iterations need the name of the loop: --loop NAME")
	case l.Loop == "":
		return nil
	case l.Iteration < 1:
		return usage("a step of a loop needs its number, from 1: --iteration N")
	case l.Iteration == 1, a.isRepeat(client, call): // a repeat finds its test, and pays nothing
		return nil
	}
	last, err := a.store.LastRun(a.dir)
	if err != nil || last.Service != client.Base() || last.Loops[l.Loop] == "" {
		return err
	}
	var session humanqa.LoopSession
	if err := client.Get(ctx, "/v1/loop-sessions/"+url.PathEscape(last.Loops[l.Loop]), &session); err != nil {
		return err
	}
	if session.Status == humanqa.LoopSessionStatusRunning {
		return nil
	}
	return refused("the loop %s has ended (%s) after %d of %d steps and %d credits: nothing was submitted. Ask a person; --iteration 1 begins a new one",
		l.Loop, session.Status, session.Iterations, session.MaxIterations, session.CreditsSpent)
}

// rememberLoop keeps the loop session of the name for this directory.
func (a *app) rememberLoop(name, sessionID string) {
	if name != "" && sessionID != "" {
		a.changeRun(func(r *store.Run) { r.Loops[name] = sessionID })
	}
}
