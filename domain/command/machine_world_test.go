package command_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"time"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/policy"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// tenant is an account of the world.
type tenant struct {
	id      string
	sandbox bool
}

// world is two processes on one log, their customers and checkers, the timers
// of the policies, and what the log adds up to. Nothing in it is random: rapid
// decides, so that it can shrink.
type world struct {
	log      *logtest.Memory
	services [2]*command.Service
	ai       *moodyAI

	mu   sync.Mutex
	now  time.Time        // Postgres': it decides what is due
	skew [2]time.Duration // of the processes' clocks
	// behind says that a process's clock was ever behind Postgres'.
	behind bool
	// asked is what the next calls of clients say of when they were asked for:
	// zero, where nobody remembers.
	asked time.Time

	tenants   []tenant
	checkers  []string
	belongsTo map[string]string // a checker's own account
	projects  map[string][]string
	ids       int

	// What the log adds up to.
	seen      int
	closes    int
	audit     *audit.Audit
	eventIDs  map[string]string
	ahead     map[string]time.Duration
	jobs      map[string]job.State
	jobOrder  []string
	created   map[string]*job.Created
	completed []string // in the log's order
	ledgers   map[string]credits.State
	unclosed  map[string]credits.State // as if no ledger had ever been closed
	sites     map[string]project.State
	fixes     map[string][]project.Prepared // every fix ever prepared, by project
	forgotten map[string]bool               // fixes that were verified
	sessions  map[string]session.State
	lobbies   []string // every session, in the order of their creation
	loops     map[string]loop.State
	loopOrder []string

	timers  map[timerKey]policy.Timer
	settled map[timerKey]string    // the cause that it was settled for
	rest    map[timerKey]time.Time // a failed one's
	fired   []firing               // every one that ever was, once

	claims []command.Claim // every one that was ever answered
	orders []*order        // every call that a client may repeat
}

type timerKey struct{ kind, key string }

const limitOfClaims = 2

func newWorld(t *rapid.T) *world {
	w := &world{
		log: logtest.New(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		belongsTo: map[string]string{}, projects: map[string][]string{},
		audit: audit.New(), eventIDs: map[string]string{}, ahead: map[string]time.Duration{},
		jobs: map[string]job.State{}, created: map[string]*job.Created{},
		ledgers: map[string]credits.State{}, unclosed: map[string]credits.State{}, sites: map[string]project.State{},
		fixes: map[string][]project.Prepared{}, forgotten: map[string]bool{},
		sessions: map[string]session.State{}, loops: map[string]loop.State{},
		timers: map[timerKey]policy.Timer{}, settled: map[timerKey]string{}, rest: map[timerKey]time.Time{},
	}
	w.ai = &moodyAI{w: w, instant: true}
	for i := range w.services {
		w.restart(i)
	}
	s, ctx := w.services[0], context.Background()
	for _, sandbox := range []bool{false, true} {
		id, _, err := s.CreateAccount(ctx, w.operator(), "Acme", sandbox)
		must.NoError(t, err)
		a := tenant{id, sandbox}
		w.tenants = append(w.tenants, a)
		if grant := rapid.IntRange(0, 60).Draw(t, "grant"); grant > 0 {
			_, _, err = s.GrantCredits(ctx, w.operator(), id, domain.Credits(grant), nil, "")
			must.NoError(t, err)
		}
		p, err := s.CreateProject(ctx, w.client(a), command.CreateProject{Name: "Shop"})
		must.NoError(t, err)
		w.projects[id] = []string{p.ProjectID}
	}
	own := w.tenants[0].id
	for _, accounts := range [][]string{nil, nil, nil, {own}} {
		c, err := s.CreateChecker(ctx, w.operator(), "Ann", accounts)
		must.NoError(t, err)
		w.checkers = append(w.checkers, c.CheckerID)
		if accounts != nil {
			w.belongsTo[c.CheckerID] = own
		}
	}
	w.catchUp(t)
	return w
}

// restart puts a new process in the place of an old one.
func (w *world) restart(i int) {
	w.services[i] = command.New(command.Deps{
		Log: w.log, Sealer: openSealer{}, AI: w.ai, Reads: w.ai, ClaimsPerChecker: limitOfClaims,
		Now: func() time.Time { return w.clock(i) },
		// Only the machine closes: what happens in the background has no order.
		CloseEvery: math.MaxInt,
	})
}

func (w *world) clock(i int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now.Add(w.skew[i])
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) cause(actor string) command.Cause {
	w.ids++
	return command.Cause{CommandID: domain.CommandIDFor("machine", fmt.Sprint(w.ids)), Actor: actor}
}

func (w *world) operator() command.Cause { return w.cause("operator") }

func (w *world) checker(id string) command.Cause { return w.cause("checker:" + id) }

func (w *world) client(a tenant) command.Cause {
	c := w.cause("key:k")
	c.AccountID, c.Sandbox, c.AskedAt = a.id, a.sandbox, w.asked
	return c
}

// trouble is what befalls the appends of one call.
type trouble struct {
	mu   sync.Mutex
	hit  bool
	dead bool
	// crash counts the appends down to the one at which the process dies; with
	// every a third of the streams have their first append fail.
	crash   int
	third   uint32
	persist bool
	done    map[string]bool
}

var (
	errLost = errors.New("the log is away")
	errDied = fmt.Errorf("the process died: %w", domain.ErrUnknownOutcome)
)

func (f *trouble) strike(stream string, _ []domain.NewEvent) *logtest.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dead:
		return &logtest.Fault{Err: errDied}
	case f.crash > 0:
		if f.crash--; f.crash > 0 {
			return nil
		}
		f.hit, f.dead = true, true
		return &logtest.Fault{Persisted: f.persist, Err: errDied}
	case f.done[stream]:
		return nil
	}
	f.done[stream] = true
	h := fnv.New32()
	_, _ = h.Write([]byte(stream))
	if h.Sum32()%3 != f.third {
		return nil
	}
	f.hit = true
	if f.persist {
		return &logtest.Fault{Persisted: true, Err: errCut}
	}
	return &logtest.Fault{Err: errLost}
}

// with runs a call under the trouble, or none. A process that died is replaced.
func (w *world) with(i int, f *trouble, call func(*command.Service) error) error {
	if f != nil {
		w.log.Strike(f.strike)
	}
	err := call(w.services[i])
	w.services[i].Drain()
	w.log.Heal()
	if f != nil && f.dead {
		w.restart(i)
	}
	return err
}

// drawTrouble: three calls of four go well.
func drawTrouble(t *rapid.T) *trouble {
	f := &trouble{done: map[string]bool{}, persist: rapid.Bool().Draw(t, "persisted")}
	switch rapid.IntRange(0, 7).Draw(t, "trouble") {
	case 6:
		f.crash = rapid.IntRange(1, 6).Draw(t, "crash at")
	case 7:
		f.third = rapid.Uint32Range(0, 2).Draw(t, "third")
	default:
		return nil
	}
	return f
}
