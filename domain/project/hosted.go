package project

import (
	"cmp"
	"time"

	"humanqa/domain"
)

// TestCommand prepares the project for a hosted test, or a session, before it is paid
// for. It opens the project, attaches the webhook, and takes prepared fixes.
type TestCommand struct {
	// Open is used where the project does not exist yet.
	Open CreateCommand
	// WebhookURL may be empty: the project's URL stays as it is. The project's own URL
	// changes nothing, so an agent that names it with every test does not enable a
	// disabled webhook. Events nil leaves the list untouched.
	WebhookURL string
	Events     *[]string
	// Secret is the client's own (Supplied), or a freshly made one that is used
	// only when the webhook needs one.
	Secret   SecretSet
	Supplied bool
	// JobIDs are the jobs that take the fixes with the ids in Take. Forget are the ids of
	// fixes that earlier tests have verified.
	JobIDs []string
	Take   []string
	Forget []string
	// DeployKeys are the keys of the deploy that asks for the test, if one does. Commit
	// is the deploy's commit, where no key names it.
	Commit     string
	DeployKeys []string
	At         time.Time
}

// DecideTest writes these changes in one append (specification, "POST /v1/hosted/test",
// rules 1 to 5; decisions, "Secret conflict"). A client's secret is used only with a
// webhookUrl. A secret that differs from the project's own is refused with or without
// one, and nothing changes.
func DecideTest(s State, c TestCommand) ([]domain.Event, error) {
	events, err := receive(s, c)
	if err != nil {
		return nil, err
	}
	if taken := s.notYetWith(c.JobIDs, c.Take); len(taken) > 0 || len(c.Forget) > 0 {
		events = append(events, &RegressionsAttached{JobIDs: c.JobIDs, Items: taken, Forgotten: c.Forget, At: c.At})
	}
	if len(c.DeployKeys) > 0 && !s.received(c.JobIDs[0]) {
		events = append(events, &DeployReceived{Keys: c.DeployKeys, JobID: c.JobIDs[0], CommitSHA: c.Commit, At: c.At})
	}
	return events, nil
}

// receive opens the project, or changes its webhook.
func receive(s State, c TestCommand) ([]domain.Event, error) {
	if !s.Exists {
		open := c.Open
		open.WebhookURL, open.Events, open.Secret, open.At = c.WebhookURL, c.Events, c.Secret, c.At
		return DecideCreate(s, open)
	}
	if err := cmp.Or(s.TakesTests(), c.RefuseSecret(s)); err != nil {
		return nil, err
	}
	var wrong invalid
	wrong.events(c.Events)
	if err := wrong.Refusal(); err != nil {
		return nil, err
	}
	update := UpdateCommand{Changes: Changes{Events: c.Events}, Secret: c.Secret, At: c.At}
	if c.WebhookURL != "" && c.WebhookURL != s.WebhookURL {
		update.WebhookURL = &c.WebhookURL
	}
	return changeWebhook(s, update), nil
}

// RefuseSecret refuses a client's secret that is not the project's own. A command calls
// it before its first write.
func (c TestCommand) RefuseSecret(s State) error {
	if !c.Supplied || s.Secret.ID == "" || s.Secret.Fingerprint == c.Secret.Fingerprint {
		return nil
	}
	return &domain.Error{
		Kind: domain.KindConflict, Code: domain.CodeSecretConflict,
		Message: "the project has a different webhook secret",
		Hint:    "leave webhookSecret out, or rotate the secret in the dashboard",
	}
}
