package webhooks

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/announce"
	"humanqa/domain/project"
)

// EndpointRow is a row of webhooks.endpoints.
type EndpointRow struct {
	ProjectID      string         `db:"project_id"`
	AccountID      string         `db:"account_id"`
	URL            string         `db:"url"`
	Events         pq.StringArray `db:"events"` // nil: every kind
	Secret         string         `db:"secret"`
	PreviousSecret string         `db:"previous_secret"`
	PreviousUntil  *time.Time     `db:"previous_until"`
	NewSecret      string         `db:"new_secret"` // the receiver's reaction to Secret: notAccepted, accepted, confirmed
	Resets         int64          `db:"generation"` // counts the changes after which earlier failures no longer count
	Enabled        bool           `db:"enabled"`
	DisabledBy     string         `db:"disabled_by"`
	DisabledReason string         `db:"disabled_reason"`
	Announced      bool           `db:"announced"`
	Cap            int            `db:"cap"` // deliveries at once; 0: the initial cap
	DueAt          *time.Time     `db:"due_at"`
	LeaseID        *uuid.UUID     `db:"lease_id"` // the dispatcher that holds the lease; nil: none
	InFlight       pq.StringArray `db:"in_flight"`
	OwnHeaders
	EndpointHealth
}

// A receiver's reactions to the new secret of a rotation (EndpointRow.NewSecret). They
// end with the overlap.
const (
	SecretNotAccepted = ""
	// SecretAccepted: the last success had X-Service-Signature of the new secret. That alone
	// proves nothing: a receiver may verify webhook-signature, or nothing at all.
	SecretAccepted = "accepted"
	// SecretConfirmed: the same delivery had been refused just before, with the previous
	// secret. The receiver has the new one, and the log must be told.
	SecretConfirmed = "confirmed"
)

// EndpointColumns are the columns of an endpoint. They are named, so that a column of a
// later version does not disturb this one.
const EndpointColumns = `project_id, account_id, url, events, secret, previous_secret, previous_until, new_secret, generation, enabled, disabled_by,
	disabled_reason, announced, cap, due_at, lease_id, in_flight, consecutive_failures, failing_since, last_error, last_success_at,
	headers, headers_origin`

// EndpointHealth has the results of an endpoint's latest attempts.
type EndpointHealth struct {
	ConsecutiveFailures int        `db:"consecutive_failures"` // attempts since the last success
	FailingSince        *time.Time `db:"failing_since"`        // the first of them
	LastError           string     `db:"last_error"`           // of the latest of them
	LastSuccessAt       *time.Time `db:"last_success_at"`
}

// changesEndpoint says whether an event changes an endpoint.
func changesEndpoint(event domain.Event) bool {
	changed, _ := new(EndpointRow).applyEvent(event)
	return changed
}

// applyEvent folds one event of the project into the endpoint. hold says that all waiting
// deliveries must be held now. Events that do not concern the webhook change nothing.
func (e *EndpointRow) applyEvent(event domain.Event) (changed, hold bool) {
	switch event := event.(type) {
	case *project.Created:
		e.AccountID = event.AccountID
	case *project.WebhookSet:
		if event.URL != e.URL {
			e.EndpointHealth = EndpointHealth{}
		}
		e.URL, e.Events = event.URL, nil
		if event.Events != nil {
			e.Events = append(pq.StringArray{}, *event.Events...) // empty is not nil
		}
		e.enableAfresh()
	case *project.WebhookCleared:
		e.URL, e.Events, e.EndpointHealth = "", nil, EndpointHealth{}
		e.enableAfresh()
		hold = true
	case *project.WebhookEnabled:
		e.EndpointHealth = EndpointHealth{LastSuccessAt: e.LastSuccessAt}
		e.enableAfresh()
	case *project.WebhookDisabled:
		e.Enabled, e.Announced = false, true
		e.DisabledBy, e.DisabledReason = event.DeliveryID, event.Reason
		hold = true
	case *project.SecretSet:
		e.PreviousSecret, e.PreviousUntil = "", nil
		if event.PreviousUntil != nil {
			e.PreviousSecret, e.PreviousUntil = e.Secret, event.PreviousUntil
		}
		e.Secret, e.NewSecret = event.Sealed, SecretNotAccepted
		e.Resets++
	case *project.WebhookHeadersSet:
		e.OwnHeaders = ownHeadersOf(event)
	case *project.RotationFinished:
		e.PreviousSecret, e.PreviousUntil, e.NewSecret = "", nil, SecretNotAccepted
	default:
		return false, false
	}
	return true, hold
}

// enableAfresh enables the endpoint with its initial cap: failures of requests that are
// still running no longer count.
func (e *EndpointRow) enableAfresh() {
	e.Resets++
	e.Enabled, e.Announced, e.Cap = true, true, 0
	e.DisabledBy, e.DisabledReason = "", ""
}

// wantsKind says whether the endpoint is subscribed to that kind. The kinds that a
// list cannot name are sent only when it was omitted (decisions,
// "Unnamed events"), those of the account and of disputes only when it names them (decisions,
// "Account events", "Disputes").
func (e *EndpointRow) wantsKind(kind announce.Kind) bool {
	switch {
	case e.URL == "":
		return false
	case e.Events == nil:
		return !kind.OfAccount && !kind.Listed
	}
	return (kind.Subscribable || kind.Nameable || kind.Listed || kind.OfAccount) && slices.Contains(e.Events, kind.Name)
}
