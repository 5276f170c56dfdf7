package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/announce"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
	"humanqa/eventstore/consumer"
	"humanqa/eventstore/generation"
	"humanqa/internal/pgpool"
)

// SubscriberName is the subscriber's name among the consumers of the log.
const SubscriberName = "webhooks"

// Subscriber turns events into deliveries; eventstore/consumer runs it. It never goes
// back before its checkpoint, so no event is announced twice, even if other consumers are
// rebuilt. If the database loses a commit in a crash, it loses deliveries and checkpoint
// together. Deliveries of it that were sent are then sent again under the same ids.
type Subscriber struct {
	db      *sqlx.DB
	about   *About
	baseURL string
	direct  DirectSender // nil: everything waits for a claim

	// urls holds the projects that have a URL, and maybe some that had one. Events of all
	// other projects are skipped. Only the owner of the lease changes URLs.
	urls map[string]bool
	// listeners are the accounts, by project, of projects whose list names an event of
	// the whole account, and maybe of some whose list did before.
	listeners map[string]string
}

var (
	_ consumer.Preparer  = (*Subscriber)(nil)
	_ consumer.Committer = (*Subscriber)(nil)
	_ consumer.Announcer = (*Subscriber)(nil)
	_ consumer.InOrder   = (*Subscriber)(nil)
)

// NewSubscriber prepares a subscriber. It reads jobs that were submitted long ago from
// log. baseURL starts the links in deliveries.
func NewSubscriber(db *sqlx.DB, log domain.Log, baseURL string) *Subscriber {
	return &Subscriber{db: db, about: NewAbout(log), baseURL: baseURL}
}

// Name implements consumer.Consumer.
func (*Subscriber) Name() string { return SubscriberName }

// Gather implements consumer.Lazy: no answer to a command needs a delivery, but
// deliveries should not be late either.
func (*Subscriber) Gather() time.Duration { return 0 }

// Announces implements consumer.Announcer.
func (*Subscriber) Announces() {}

// InOrder implements consumer.InOrder. Events of a project or an account change where
// deliveries go, and whether any go. Out of order, deliveries might go to an address that
// was cleared. Deliveries of other streams keep the order of their own stream only.
func (*Subscriber) InOrder(stream string) bool {
	return strings.HasPrefix(stream, domain.ProjectStreams) || strings.HasPrefix(stream, domain.AccountStreams)
}

// Handles implements consumer.Consumer: the announced events, and those that change their
// endpoints.
func (*Subscriber) Handles() []string {
	var types []string
	for _, spec := range project.Specs() {
		if e := spec.New(); changesEndpoint(e) {
			types = append(types, e.EventType())
		}
	}
	for _, k := range announce.Kinds() {
		types = append(types, k.Type)
	}
	return append(types, domain.TypesOf((*account.ErasureFinished)(nil), (*job.Erased)(nil))...)
}

const listURLs = `
SELECT project_id
FROM webhooks.endpoints
WHERE url <> ''`

const listListeners = `
SELECT project_id, account_id
FROM webhooks.endpoints
WHERE url <> ''
  AND events && $1`

// Begin implements consumer.Preparer.
func (s *Subscriber) Begin(ctx context.Context) (err error) {
	if s.urls, err = pgpool.Set(ctx, s.db, "the endpoints", listURLs); err != nil {
		return err
	}
	named, err := pgpool.List[EndpointRow](ctx, s.db, "the listeners of accounts", listListeners, pq.Array(subscription.OfAccount()))
	if err != nil {
		return err
	}
	s.listeners = make(map[string]string, len(named))
	for _, e := range named {
		s.listeners[e.ProjectID] = e.AccountID
	}
	return nil
}

// step is one event that may touch an endpoint, or erases an account or a job.
type step struct {
	domain.Recorded
	erase     []string // the statements of an erasure; else nil
	erased    string   // their subject
	projectID string
	kind      announce.Kind // of an announcement; zero for a project event
	body      []byte        // of an announcement
}

// Prepare implements consumer.Preparer: it selects the events that concern endpoints, and
// renders payloads.
func (s *Subscriber) Prepare(ctx context.Context, batch []domain.Recorded) (write consumer.Write, done int, err error) {
	var steps []step
	for _, r := range batch {
		own, failed := s.prepareEvent(ctx, r)
		if failed != nil {
			err = fmt.Errorf("%s in %s: %w", r.Type, r.Stream, failed)
			break
		}
		steps = append(steps, own...)
		done++
	}
	if len(steps) > 0 {
		write = func(ctx context.Context, tx *sqlx.Tx) error { return s.writeBatch(ctx, tx, steps) }
	}
	return write, done, err
}

// prepareEvent gives the steps of one event. It may change an endpoint. It may be announced
// to its project, or to all projects of the account that listen.
func (s *Subscriber) prepareEvent(ctx context.Context, r domain.Recorded) (steps []step, err error) {
	if id, ok := strings.CutPrefix(r.Stream, domain.ProjectStreams); ok && changesEndpoint(r.Event) {
		if e, ok := r.Event.(*project.WebhookSet); ok && e.URL != "" {
			s.urls[id] = true
			if e.Events != nil && slices.ContainsFunc(*e.Events,
				func(name string) bool { return slices.Contains(subscription.OfAccount(), name) }) {
				s.listeners[id] = r.Meta.AccountID
			}
		}
		steps = append(steps, step{Recorded: r, projectID: id})
	}
	if _, ok := r.Event.(*account.ErasureFinished); ok {
		return append(steps, step{Recorded: r, erase: []string{eraseDeliveries, eraseEndpoints}, erased: r.StreamID()}), nil
	}
	if _, ok := r.Event.(*job.Erased); ok {
		s.about.Forget(r.Stream)
		return append(steps, step{Recorded: r, erase: []string{eraseBodies}, erased: r.Stream}), nil
	}
	kind, announced := announce.Of(r.Event)
	if !announced || len(s.urls) == 0 || kind.OfAccount && len(s.listeners) == 0 {
		return steps, nil
	}
	about, err := s.about.Event(ctx, r)
	if err != nil {
		return nil, err
	}
	hears := []string{about.ProjectID}
	if kind.OfAccount {
		hears = s.listenersOf(about.AccountID)
	}
	hears = slices.DeleteFunc(hears, func(id string) bool { return !s.urls[id] })
	if len(hears) == 0 {
		return steps, nil
	}
	body, _, err := announce.Render(s.baseURL, r, about)
	if err != nil {
		return nil, noPayload(err)
	}
	for _, id := range hears {
		steps = append(steps, step{Recorded: r, projectID: id, kind: kind, body: body})
	}
	return steps, nil
}

// listenersOf are the projects whose list names an event of the account.
func (s *Subscriber) listenersOf(accountID string) (ids []string) {
	for id, of := range s.listeners {
		if of == accountID {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// noPayload marks an error that no repeat can change.
func noPayload(err error) error {
	return &consumer.PoisonError{Category: generation.CategoryPayload, Err: fmt.Errorf("no payload can be made: %w", err)}
}
