package webhooks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
)

// SubscriberName is the subscriber's name among what follows the log.
const SubscriberName = "webhooks"

// Subscriber turns events into deliveries; eventstore/consumer runs it. It never
// goes back behind its checkpoint, so nothing is announced twice, whatever is
// rebuilt elsewhere. If the database forgets a commit in a crash it forgets
// deliveries and checkpoint alike, and whatever was sent of them comes again
// under the same id.
type Subscriber struct {
	db       *sqlx.DB
	enricher *enricher
	baseURL  string

	// urls holds the projects that have a URL, and maybe some that had one: the
	// events of all others are not worth a look. Only the owner of the lease
	// changes URLs.
	urls map[string]bool
}

var (
	_ consumer.Preparer = (*Subscriber)(nil)
	_ consumer.Lazy     = (*Subscriber)(nil)
)

// NewSubscriber prepares a subscriber. log is asked about jobs that were
// submitted long ago; baseURL starts the links that deliveries carry.
func NewSubscriber(db *sqlx.DB, log domain.Log, baseURL string) *Subscriber {
	return &Subscriber{db: db, enricher: newEnricher(log), baseURL: baseURL}
}

// Name implements consumer.Consumer.
func (*Subscriber) Name() string { return SubscriberName }

// Gather implements consumer.Lazy: what a delivery says is no answer to a
// command, but it should not be late either.
func (*Subscriber) Gather() time.Duration { return 0 }

// Handles implements consumer.Consumer: what is announced, and what changes
// where it goes.
func (*Subscriber) Handles() []string {
	var types []string
	for _, spec := range project.Specs() {
		if e := spec.New(); concerns(e) {
			types = append(types, e.EventType())
		}
	}
	for _, k := range announce.Kinds() {
		types = append(types, k.Type)
	}
	return types
}

const listURLs = `
SELECT project_id
FROM webhooks.endpoints
WHERE url <> ''`

// Begin implements consumer.Preparer.
func (s *Subscriber) Begin(ctx context.Context) error {
	var ids []string
	if err := s.db.SelectContext(ctx, &ids, listURLs); err != nil {
		return fmt.Errorf("list endpoints: %w", err)
	}
	s.urls = make(map[string]bool, len(ids))
	for _, id := range ids {
		s.urls[id] = true
	}
	return nil
}

// step is one event that may touch an endpoint.
type step struct {
	domain.Recorded
	projectID string
	kind      announce.Kind // of an announcement; zero for a project event
	body      []byte        // of an announcement
}

// Prepare implements consumer.Preparer: it sorts out what concerns endpoints
// and renders payloads.
func (s *Subscriber) Prepare(ctx context.Context, batch []domain.Recorded) (write consumer.Write, done int, err error) {
	var steps []step
	for _, r := range batch {
		st, relevant, failed := s.prepareOne(ctx, r)
		if failed != nil {
			err = fmt.Errorf("%s in %s: %w", r.Type, r.Stream, failed)
			break
		}
		if relevant {
			steps = append(steps, st)
		}
		done++
	}
	if len(steps) > 0 {
		write = func(ctx context.Context, tx *sqlx.Tx) error { return s.write(ctx, tx, steps) }
	}
	return write, done, err
}

func (s *Subscriber) prepareOne(ctx context.Context, r domain.Recorded) (st step, relevant bool, err error) {
	if id, ok := strings.CutPrefix(r.Stream, domain.ProjectStreams); ok {
		if e, ok := r.Event.(*project.WebhookSet); ok && e.URL != "" {
			s.urls[id] = true
		}
		return step{Recorded: r, projectID: id}, concerns(r.Event), nil
	}
	kind, announced := announce.Of(r.Event)
	if !announced || len(s.urls) == 0 {
		return step{}, false, nil
	}
	about, err := s.enricher.enrich(ctx, r)
	if errors.Is(err, errHeadless) {
		return step{}, false, noPayload(err)
	}
	if err != nil || !s.urls[about.ProjectID] {
		return step{}, false, err
	}
	body, _, err := announce.Render(s.baseURL, r, about)
	if err != nil {
		return step{}, false, noPayload(err)
	}
	return step{Recorded: r, projectID: about.ProjectID, kind: kind, body: body}, true, nil
}

// noPayload marks what trying again cannot change.
func noPayload(err error) error {
	return &consumer.PoisonError{Category: consumer.CategoryPayload, Err: fmt.Errorf("no payload can be made: %w", err)}
}
