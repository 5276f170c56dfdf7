// Package changes tells open pages that the read models show a change. One reader of
// the feed a process serves them all.
package changes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/backoff"
	"humanqa/internal/pgpool"
	"humanqa/projections/readmodel"
)

const (
	// changesBatch bounds how many events one look takes.
	changesBatch = 500
	// changesWait bounds how long news waits for the read models. Then who is told looks, and
	// again after as long. All look once the read models are no more behind.
	changesWait = 20 * time.Second
	// changesRetry is the pause after a look that failed.
	changesRetry = time.Second
	// tooMany is the most changed streams that are named; more become Everything.
	tooMany = 50
)

// Everything stands for too many streams to name.
const Everything = "*"

// Queue is a topic, like an account. Its follower gets a stream of that name when a job
// may have come to the checkers' queue, or left it. The name of the job is not given.
const Queue = "queue"

// Checker is a topic, like an account: the checker's claimed and completed jobs, and
// their sessions. A change of another slot counts as a change of the session. Its
// follower also gets a stream of that name. A page needs it between the end of a claim
// and the update of the read model that lists it as work: then it names no stream of that
// job.
func Checker(id string) string { return "checker:" + id }

// Person is a topic, like an account: the person's own stream, which has the changes of
// the person's rights.
func Person(id string) string { return "person:" + id }

// quiet are the events of jobs that leave the queue as it is.
var quiet = domain.TypesOf((*job.ItemChecked)(nil), (*job.FindingAdded)(nil), (*job.FindingEdited)(nil),
	(*job.FindingWithdrawn)(nil), (*job.Heartbeat)(nil), (*job.Completed)(nil), (*job.AIReportReady)(nil), (*job.Rated)(nil),
	(*job.Disputed)(nil), (*job.DisputeAnswered)(nil), (*job.DisputeDecided)(nil), (*job.DisputeSettled)(nil))

func changesQueue(e domain.Recorded) bool {
	switch kind, _, _ := strings.Cut(e.Stream, "-"); kind {
	case "job":
		return !slices.Contains(quiet, e.Type)
	case "account", "pool": // suspended, reinstated; kept to a pool, or not
		return true
	}
	return false
}

// Changes tells the followers of an account which of its streams the read models show
// anew. One reader serves all followers of this process; without followers it stands still,
// and no read model is hurried.
type Changes struct {
	source  consumer.Source
	db      *sqlx.DB
	waitFor func(context.Context, domain.Position) error
	wait    time.Duration
	log     logrus.FieldLogger

	joined    chan struct{} // has a token if somebody began to follow
	mu        sync.Mutex
	followers map[*follower]struct{}
}

// follower gathers the changes that it has not taken yet.
type follower struct {
	accounts []string      // and other topics
	out      chan []string // holds one list, with all gathered changes
}

// New prepares; Run makes it move. waitFor returns when every read model shows
// the position.
func New(source consumer.Source, db *sqlx.DB, waitFor func(context.Context, domain.Position) error, log logrus.FieldLogger) *Changes {
	return &Changes{
		source: source, db: readmodel.Pool(db), waitFor: waitFor, wait: changesWait, log: log.WithField("component", "changes"),
		joined: make(chan struct{}, 1), followers: map[*follower]struct{}{},
	}
}

// Follow gives the changed streams of the accounts, until leave is called. Queue, Checker
// and Person are followed the same way. Changes that were not taken are merged with later
// ones.
func (c *Changes) Follow(accounts ...string) (changed <-chan []string, leave func()) {
	f := &follower{accounts: accounts, out: make(chan []string, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followers[f] = struct{}{}
	select {
	case c.joined <- struct{}{}:
	default: // there is one
	}
	return f.out, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.followers, f)
	}
}

// followed says whether there is a follower, and whether one is a checker.
func (c *Changes) followed() (anybody, checkers bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers {
		if slices.Contains(f.accounts, Queue) {
			return true, true
		}
	}
	return len(c.followers) > 0, false
}

// Run reads the log from a position on, until ctx ends.
func (c *Changes) Run(ctx context.Context, from domain.Position) error {
	at := eventstore.Checkpoint{Position: from, Start: from == domain.Position{}}
	late := false // somebody looked before it was shown
	for ctx.Err() == nil {
		if anybody, _ := c.followed(); !anybody {
			select {
			case <-c.joined:
				at = eventstore.At(at.Position.Max(c.source.Head())) // all before was for nobody
				for slow := true; slow && ctx.Err() == nil; {
					_, slow = c.shown(ctx, at.Position)
				}
				c.tellAll()
			case <-ctx.Done():
			}
			continue
		}
		page, err := c.source.Next(ctx, at, changesBatch, nil)
		if err == nil {
			shown, slow := c.shown(ctx, page.Next)
			// Whoever follows from now on sees what is shown.
			if err = c.tell(ctx, page); ctx.Err() == nil && (err != nil || late && shown) {
				c.tellAll()
			}
			late = !shown
			if !slow || len(page.Events) == changesBatch {
				at = eventstore.Checkpoint{Position: page.Next}
			}
		} else if unreadable, ok := errors.AsType[*eventstore.DecodeError](err); ok {
			at = eventstore.At(unreadable.Position)
			c.tellAll()
		}
		if err != nil && ctx.Err() == nil {
			// The projections report the errors that stop them.
			c.log.WithError(err).Warn("what changed cannot be found out")
			_ = backoff.Wait(ctx, changesRetry)
		}
	}
	return nil
}

// shown waits until the read models show the position, or are slow. If one of them has
// stopped, the others get a moment.
func (c *Changes) shown(ctx context.Context, at domain.Position) (shown, slow bool) {
	short, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	shown = c.waitFor(short, at) == nil
	if slow = short.Err() != nil; !shown && !slow {
		_ = backoff.Wait(ctx, changesRetry)
	}
	return shown, slow
}

// ownersSQL finds the accounts of streams $1 with the ids $2: a checker's events do not name
// them. The feed, which knows all streams, may learn of a new one after its first changes.
const ownersSQL = `
SELECT 'job-' || id AS stream, account_id
FROM readmodel.jobs
WHERE id = ANY($2)
UNION ALL
SELECT 'session-' || id, account_id
FROM readmodel.sessions
WHERE id = ANY($2)
UNION ALL
SELECT stream, account_id
FROM readmodel.event_streams
WHERE stream = ANY($1)`

// workSQL finds the checkers of jobs $1, and the people that work in the sessions of these
// jobs, and in sessions $2.
const workSQL = `
SELECT 'job-' || id AS stream, checker_id AS account_id
FROM readmodel.jobs
WHERE id = ANY($1)
  AND checker_id <> ''
UNION
SELECT 'session-' || s.session_id, j.checker_id
FROM (
    SELECT session_id FROM readmodel.session_jobs WHERE job_id = ANY($1)
    UNION
    SELECT unnest($2::text[])) AS r (session_id)
JOIN readmodel.session_jobs s ON s.session_id = r.session_id
JOIN readmodel.jobs j ON j.id = s.job_id
WHERE j.checker_id <> ''`

type ownerRow struct {
	Stream    string `json:"stream"`
	AccountID string `json:"account_id"`
}

// tell tells the followers of the page's streams.
func (c *Changes) tell(ctx context.Context, page eventstore.Page) error {
	anybody, checkers := c.followed()
	if len(page.Events) == 0 || !anybody {
		return nil
	}
	owner := map[string]string{}
	var unknown, ids []string
	for _, e := range page.Events {
		if e.Meta.AccountID != "" {
			owner[e.Stream] = e.Meta.AccountID
		} else if _, asked := owner[e.Stream]; !asked {
			owner[e.Stream] = ""
			unknown, ids = append(unknown, e.Stream), append(ids, e.StreamID())
		}
	}
	if len(unknown) > 0 {
		rows, err := pgpool.List[ownerRow](ctx, c.db, "the owners of streams", ownersSQL, pq.Array(unknown), pq.Array(ids))
		if err != nil {
			return err
		}
		for _, r := range rows {
			if owner[r.Stream] == "" {
				owner[r.Stream] = r.AccountID
			}
		}
	}
	news := map[string][]string{}
	for stream, account := range owner {
		if account != "" {
			news[account] = append(news[account], stream)
		}
		if id, of := strings.CutPrefix(stream, domain.PersonStreams); of {
			news[Person(id)] = append(news[Person(id)], stream)
		}
	}
	if checkers {
		if err := c.work(ctx, page, news); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers {
		f.gather(news)
	}
	return nil
}

// tellAll tells all followers that something may have changed.
func (c *Changes) tellAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.followers {
		f.add([]string{Everything})
	}
}

// work adds the changes for checkers.
func (c *Changes) work(ctx context.Context, page eventstore.Page, news map[string][]string) error {
	var jobs, sessions []string
	for _, e := range page.Events {
		if id, of := strings.CutPrefix(e.Stream, domain.JobStream("")); of {
			jobs = append(jobs, id)
		}
		if id, of := strings.CutPrefix(e.Stream, domain.SessionStreams); of {
			sessions = append(sessions, id)
		}
		if changesQueue(e) {
			news[Queue] = []string{Queue}
		}
	}
	if len(jobs)+len(sessions) == 0 {
		return nil
	}
	rows, err := pgpool.List[ownerRow](ctx, c.db, "the checkers of jobs and sessions", workSQL, pq.Array(jobs), pq.Array(sessions))
	for _, r := range rows {
		topic := Checker(r.AccountID)
		news[topic] = append(news[topic], r.Stream, topic)
	}
	return err
}

// gather adds to the changes that wait to be taken. The caller holds the lock, so nothing
// comes in between.
func (f *follower) gather(told map[string][]string) {
	var news []string
	for _, account := range f.accounts {
		news = append(news, told[account]...)
	}
	if len(news) > 0 {
		f.add(news)
	}
}

func (f *follower) add(news []string) {
	select {
	case waiting := <-f.out:
		news = append(news, waiting...)
	default:
	}
	slices.Sort(news)
	if news = slices.Compact(news); len(news) > tooMany || news[0] == Everything {
		news = []string{Everything}
	}
	f.out <- news
}
