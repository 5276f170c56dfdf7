package project

import (
	"slices"
	"time"

	"humanqa/domain"
	"humanqa/domain/retention"
)

// Every decision returns the events to write, none for a harmless repeat, or
// the refusal.

// Opening has the settings of a new project. Optional ones are nil, or empty, when they are
// not set.
type Opening struct {
	Name              string
	Description       *string
	DefaultURL        *string
	DefaultJobType    *string
	DefaultSLAMinutes *int
	// WebhookURL may be empty; Events are ignored then. Events nil means every kind,
	// empty means none.
	WebhookURL string
	Events     *[]string
	Headers    *Headers // the decision takes the sealed ones
}

// CreateCommand opens a project.
type CreateCommand struct {
	Opening
	AccountID string
	HookHash  string
	// Host is the host of a hosted test that opens the project automatically.
	Host string
	// Secret is a freshly made one; it is used only with a WebhookURL.
	Secret SecretSet
	// Sealed are the own headers, which, too, are used only with a WebhookURL; nil: none.
	// UserID or KeyID sets them.
	Sealed *HeadersChange
	UserID *string
	KeyID  string
	At     time.Time
}

// Changes are new values of settings. A Field that is not set, and a nil pointer, change
// nothing.
type Changes struct {
	Name              *string
	Description       Field[string] // "" clears as nil does
	DefaultURL        Field[string] // "" clears as nil does
	DefaultJobType    Field[string] // "" clears as nil does
	DefaultSLAMinutes Field[int]
	WebhookURL        *string // "" removes the webhook and its list, the secret stays
	Events            *[]string
	// LoopAlertsSnoozedUntil holds loop_session.ended back.
	LoopAlertsSnoozedUntil Field[time.Time]
	// QuestionMinutes is how long a checker's question waits: 0 (no questions) to 60.
	QuestionMinutes Field[int]
	// Keep changes how long the project's evidence is kept.
	Keep retention.Change
}

// UpdateCommand changes the settings that it names.
type UpdateCommand struct {
	Changes
	// Headers changes the own headers, by the person UserID or the API key KeyID. It counts
	// only where a URL is configured, before or by this command.
	Headers *HeadersChange
	UserID  *string
	KeyID   string
	// Secret is a freshly made one; it is used only when the webhook needs one.
	Secret SecretSet
	At     time.Time
}

// Field is a setting in an update.
type Field[T any] = domain.Field[T]

// DecideCreate opens the project, with its webhook if a URL comes with it.
func DecideCreate(s State, c CreateCommand) ([]domain.Event, error) {
	if s.Exists {
		return nil, domain.Conflict("the project exists already")
	}
	var wrong invalid
	wrong.name(c.Name)
	wrong.sla(c.DefaultSLAMinutes)
	wrong.events(c.Events)
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	events := []domain.Event{&Created{
		AccountID: c.AccountID, Name: c.Name, HookHash: c.HookHash,
		Description: unlessEmpty(c.Description), DefaultURL: unlessEmpty(c.DefaultURL),
		DefaultJobType: unlessEmpty(c.DefaultJobType), DefaultSLAMinutes: c.DefaultSLAMinutes,
		Host: c.Host, At: c.At,
	}}
	if c.WebhookURL != "" {
		events = append(events,
			firstSecret(c.Secret, c.At),
			&WebhookSet{URL: c.WebhookURL, Events: c.Events, At: c.At})
	}
	return withHeaders(s, UpdateCommand{Headers: c.Sealed, UserID: c.UserID, KeyID: c.KeyID, At: c.At}, events)
}

// DecideUpdate changes settings and webhook (specification, "PATCH
// /v1/projects/:id"; decisions, "PATCH"). Values that are set already make
// no event.
func DecideUpdate(s State, c UpdateCommand) ([]domain.Event, error) {
	if !s.Exists {
		return nil, domain.NotFound("project")
	}
	var wrong invalid
	if c.Name != nil {
		wrong.name(*c.Name)
	}
	wrong.sla(c.DefaultSLAMinutes.Value)
	wrong.questions(c.QuestionMinutes.Value)
	wrong.Wrong = append(wrong.Wrong, c.Keep.Wrong()...)
	wrong.events(c.Events)
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	return withHeaders(s, c, append(changeSettings(s, c), changeWebhook(s, c)...))
}

// withHeaders adds the change of own headers to a command's other events.
func withHeaders(s State, c UpdateCommand, events []domain.Event) ([]domain.Event, error) {
	after := s
	for _, e := range events {
		after = Evolve(after, e)
	}
	own, err := changeHeaders(s, c, after)
	if err != nil {
		return nil, err
	}
	return append(events, own...), nil
}

func changeSettings(s State, c UpdateCommand) []domain.Event {
	e := SettingsChanged{
		Name:              s.Name,
		Description:       text(s.Description, c.Description),
		DefaultURL:        text(s.DefaultURL, c.DefaultURL),
		DefaultJobType:    text(s.DefaultJobType, c.DefaultJobType),
		DefaultSLAMinutes: c.DefaultSLAMinutes.Or(s.DefaultSLAMinutes),

		LoopAlertsSnoozedUntil: c.LoopAlertsSnoozedUntil.Or(s.LoopAlertsSnoozedUntil),
		QuestionMinutes:        c.QuestionMinutes.Or(s.QuestionMinutes),
		Keep:                   c.Keep.On(s.Keep),
		At:                     c.At,
	}
	if c.Name != nil {
		e.Name = *c.Name
	}
	if e.Name == s.Name && domain.Same(e.Description, s.Description) && domain.Same(e.DefaultURL, s.DefaultURL) &&
		domain.Same(e.DefaultJobType, s.DefaultJobType) && domain.Same(e.DefaultSLAMinutes, s.DefaultSLAMinutes) &&
		sameTime(e.LoopAlertsSnoozedUntil, s.LoopAlertsSnoozedUntil) && domain.Same(e.QuestionMinutes, s.QuestionMinutes) &&
		e.Same(s.Keep) {
		return nil
	}
	return []domain.Event{&e}
}

// changeWebhook: the list counts only where a URL is configured, before or by
// this command. The secret comes first, so that no reader of the stream ever
// sees a webhook that nothing can sign.
func changeWebhook(s State, c UpdateCommand) []domain.Event {
	url, list := s.WebhookURL, s.Events
	if c.WebhookURL != nil {
		url = *c.WebhookURL
	}
	if c.Events != nil {
		list = c.Events
	}
	if url == "" {
		if s.WebhookURL == "" {
			return nil
		}
		return []domain.Event{&WebhookCleared{At: c.At}}
	}

	var events []domain.Event
	if s.Secret.ID == "" {
		events = append(events, firstSecret(c.Secret, c.At))
	}
	reenable := s.Disabled && c.WebhookURL != nil
	switch {
	case url != s.WebhookURL || !sameList(list, s.Events):
		events = append(events, &WebhookSet{URL: url, Events: list, At: c.At})
		if s.Disabled && !reenable {
			// A webhook that only gets another list stays disabled.
			events = append(events, &WebhookDisabled{DeliveryID: s.DisabledBy, Reason: s.DisabledReason, At: c.At})
		}
	case reenable:
		events = append(events, &WebhookEnabled{At: c.At})
	}
	return events
}

// DecideRotateHook replaces the deploy hook's token; a repeat changes nothing.
func DecideRotateHook(s State, rotated HookRotated) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.HookID == rotated.HookID:
		return nil, nil
	}
	return []domain.Event{&rotated}, nil
}

// DecideEnable resumes deliveries.
func DecideEnable(s State, at time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.WebhookURL == "":
		return nil, noWebhook()
	case !s.Disabled:
		return nil, nil
	}
	return []domain.Event{&WebhookEnabled{At: at}}, nil
}

// DecideDisable stops deliveries (specification, "Delivery rules" 3). Without a webhook
// it changes nothing.
func DecideDisable(s State, deliveryID, reason string, at time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.WebhookURL == "" || s.Disabled:
		return nil, nil
	}
	return []domain.Event{&WebhookDisabled{DeliveryID: deliveryID, Reason: reason, At: at}}, nil
}

// Overlap is how long a secret that was replaced signs beside the new one
// (decisions, "Rotation").
const Overlap = 24 * time.Hour

// DecideRotate replaces the secret; wall is the time of the wall's clock. During the
// overlap of an earlier rotation, a receiver that knows the second secret could verify
// nothing under a third. So only a rotation without an overlap, for a leak, is possible
// then. The same secret again is a repeat.
func DecideRotate(s State, secret SecretSet, wall time.Time) ([]domain.Event, error) {
	again := slices.ContainsFunc(s.Rotations, func(r Rotation) bool { return r.SecretID == secret.SecretID })
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.WebhookURL == "":
		return nil, noWebhook()
	case s.Secret.ID == secret.SecretID:
		return nil, nil
	case again:
		return nil, domain.Conflict("the secret was rotated once more since").WithHint("read the present one in the dashboard")
	case secret.PreviousUntil != nil && s.overlaps(wall):
		return nil, domain.Conflict("the last rotation is not finished").
			WithHint(
				`finish it ({"finish": true}) once your receiver knows the new secret, or replace a leaked one at once ({"immediate": true})`)
	}
	secret.Rotated = true
	return []domain.Event{&secret}, nil
}

// DecideFinish ends a rotation's overlap. Without one there is nothing to end.
func DecideFinish(s State, finished RotationFinished, wall time.Time) ([]domain.Event, error) {
	switch {
	case !s.Exists:
		return nil, domain.NotFound("project")
	case s.WebhookURL == "":
		return nil, noWebhook()
	case !s.overlaps(wall):
		return nil, nil
	}
	return []domain.Event{&finished}, nil
}

// DecideConfirmed ends the overlap of the rotation to the secret with that sealed form,
// because its receiver verifies with it. It leaves alone a later rotation, and one that
// ended.
func DecideConfirmed(s State, sealed string, wall time.Time) ([]domain.Event, error) {
	if s.Secret.Sealed != sealed || !s.overlaps(wall) {
		return nil, nil
	}
	return []domain.Event{&RotationFinished{At: wall, By: ByReceiver}}, nil
}

func (s State) overlaps(wall time.Time) bool {
	return s.PreviousUntil != nil && wall.Before(*s.PreviousUntil)
}

func noWebhook() error {
	return domain.Conflict("the project has no webhook").WithHint("set webhookUrl first")
}

func firstSecret(secret SecretSet, at time.Time) *SecretSet {
	secret.At, secret.Rotated = at, false
	return &secret
}

func text(old *string, f Field[string]) *string {
	if !f.Set {
		return old
	}
	return unlessEmpty(f.Value)
}

func unlessEmpty(s *string) *string {
	if s == nil || *s == "" {
		return nil
	}
	return s
}

// sameTime compares instants, whatever their location.
func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// sameList distinguishes nil, which means every kind, from the empty list.
func sameList(a, b *[]string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(*a, *b)
}
