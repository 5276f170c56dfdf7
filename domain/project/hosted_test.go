package project_test

import (
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
)

// test is a hosted test whose client brings its own secret, f2.
func test(change func(*project.TestCommand)) decide {
	return func(s project.State) ([]domain.Event, error) {
		c := project.TestCommand{
			Open:     project.CreateCommand{Opening: project.Opening{Name: "shop.example"}, AccountID: "acme", Host: "shop.example", HookHash: "hh"},
			Supplied: true, Secret: fresh(), JobIDs: []string{"j1"}, At: t1,
		}
		change(&c)
		return project.DecideTest(s, c)
	}
}

func opened() *project.Created {
	return &project.Created{AccountID: "acme", Name: "shop.example", Host: "shop.example", HookHash: "hh", At: t1}
}

func TestAHostedTestOpensItsProject(t *testing.T) {
	t.Parallel()
	t.Run("without a webhook", func(t *testing.T) {
		given(t).When(test(func(c *project.TestCommand) { c.Supplied = false })).Events(opened())
	})
	t.Run("with the webhook, whose secret is the client's", func(t *testing.T) {
		given(t).
			When(test(func(c *project.TestCommand) { c.WebhookURL, c.Events = hook, list("job.completed") })).
			Events(opened(), freshEvent(false), &project.WebhookSet{URL: hook, Events: list("job.completed"), At: t1})
	})
	t.Run("passing over a list and a secret that have no webhook", func(t *testing.T) {
		s := given(t).
			When(test(func(c *project.TestCommand) { c.Events = list("job.completed") })).
			Events(opened()).State()
		if s.Secret.ID != "" || s.Events != nil {
			t.Errorf("the project is %+v", s)
		}
	})
}

func TestAHostedTestsWebhookOnAnExistingProject(t *testing.T) {
	t.Parallel()
	conflict := &domain.Error{
		Kind: domain.KindConflict, Code: domain.CodeSecretConflict,
		Message: "the project has a different webhook secret",
		Hint:    "leave webhookSecret out, or rotate the secret in the dashboard",
	}
	second := &project.SecretSet{SecretID: "s0", Sealed: "sealed-0", Fingerprint: "f2", At: t0}

	t.Run("rule 1: without a secret so far, the client's one signs", func(t *testing.T) {
		given(t, created()).
			When(test(func(c *project.TestCommand) { c.WebhookURL = hook })).
			Events(freshEvent(false), &project.WebhookSet{URL: hook, At: t1})
	})
	t.Run("rule 1: without a webhookUrl it counts for nothing", func(t *testing.T) {
		given(t, created()).When(test(func(*project.TestCommand) {})).Nothing()
	})
	t.Run("rule 2: the same secret again changes nothing", func(t *testing.T) {
		given(t, created(), second, webhook(hook, nil)).
			When(test(func(c *project.TestCommand) { c.WebhookURL = hook })).
			Nothing()
	})
	t.Run("rule 3: another one is refused, with a URL and without", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, nil)).
			When(test(func(c *project.TestCommand) { c.WebhookURL, c.Events, c.Take = otherHook, list(), []string{"x"} })).
			Refused(conflict)
		given(t, created(), first(), webhook(hook, nil)).When(test(func(*project.TestCommand) {})).Refused(conflict)
	})
	t.Run("rule 3: also where the URL was cleared and the secret kept", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, nil), &project.WebhookCleared{At: t0}).
			When(test(func(c *project.TestCommand) { c.WebhookURL = hook })).
			Refused(conflict)
	})
	t.Run("rule 4: without a client's secret the made one is attached with the first URL", func(t *testing.T) {
		given(t, created()).
			When(test(func(c *project.TestCommand) { c.WebhookURL, c.Supplied = hook, false })).
			Events(freshEvent(false), &project.WebhookSet{URL: hook, At: t1})
	})
	t.Run("the list is replaced, with [] too, and kept where it is omitted", func(t *testing.T) {
		for _, names := range []*[]string{list(), list("job.created")} {
			given(t, created(), second, webhook(hook, list("job.completed"))).
				When(test(func(c *project.TestCommand) { c.Events = names })).
				Events(&project.WebhookSet{URL: hook, Events: names, At: t1})
		}
		given(t, created(), second, webhook(hook, list("job.completed"))).
			When(test(func(c *project.TestCommand) { c.WebhookURL = otherHook })).
			Events(&project.WebhookSet{URL: otherHook, Events: list("job.completed"), At: t1})
	})
	t.Run("a list without a webhook is passed over", func(t *testing.T) {
		given(t, created()).When(test(func(c *project.TestCommand) { c.Events = list("job.created") })).Nothing()
	})
	t.Run("an unknown event is refused", func(t *testing.T) {
		given(t, created()).
			When(test(func(c *project.TestCommand) { c.Events = list("job.created", "Job.Created") })).
			Invalid("subscribedWebhookEvents[1]")
	})
	t.Run("the URL it has already does not enable a disabled webhook, another one does", func(t *testing.T) {
		given(t, created(), second, webhook(hook, nil), disabled()).
			When(test(func(c *project.TestCommand) { c.WebhookURL = hook })).
			Nothing()
		s := given(t, created(), second, webhook(hook, nil), disabled()).
			When(test(func(c *project.TestCommand) { c.WebhookURL = otherHook })).
			Events(&project.WebhookSet{URL: otherHook, At: t1}).State()
		if s.Disabled {
			t.Error("the webhook is still disabled")
		}
	})
}

func TestADeployIsRememberedByItsKeys(t *testing.T) {
	t.Parallel()
	deploy := func(jobID string, keys ...string) decide {
		return test(func(c *project.TestCommand) { c.JobIDs, c.DeployKeys = []string{jobID}, keys })
	}
	t.Run("once", func(t *testing.T) {
		s := given(t, created()).
			When(deploy("j1", "commit:a", "key:x")).
			Events(&project.DeployReceived{Keys: []string{"commit:a", "key:x"}, JobID: "j1", At: t1}).State()
		for _, key := range []string{"commit:a", "key:x"} {
			if found := s.DeploysOf([]string{"other", key}); len(found) != 1 || found[0].JobID != "j1" {
				t.Errorf("%s leads to %v", key, found)
			}
		}
		if found := s.DeploysOf([]string{"commit:x"}); found != nil {
			t.Errorf("a stranger leads to %v", found)
		}
	})
	t.Run("not at all without keys", func(t *testing.T) {
		given(t, created()).When(deploy("j1")).Nothing()
	})
	t.Run("the newest first, and the fifty newest only", func(t *testing.T) {
		events := []domain.Event{created()}
		for n := range project.KeptDeploys + 2 {
			events = append(events, &project.DeployReceived{
				Keys: []string{"key:x"}, JobID: string(rune('A' + n)), At: t0.Add(time.Duration(n) * time.Second),
			})
		}
		found := given(t, events...).State().DeploysOf([]string{"key:x"})
		if n := len(found); n != 50 || found[0].JobID != string(rune('A'+51)) || found[49].JobID != "C" {
			t.Errorf("%d are remembered, from %s to %s", n, found[0].JobID, found[n-1].JobID)
		}
	})
}

func TestLoopAlertsAreSnoozedUntilAMomentOrNotAtAll(t *testing.T) {
	t.Parallel()
	bare := &project.Created{AccountID: "acme", Name: "Shop", HookHash: "hh", At: t0}
	until := func(at *time.Time) *project.SettingsChanged {
		return &project.SettingsChanged{Name: "Shop", LoopAlertsSnoozedUntil: at, At: t1}
	}
	snooze := func(f project.Field[time.Time]) decide {
		return update(func(c *project.UpdateCommand) { c.LoopAlertsSnoozedUntil = f })
	}
	later := t1.Add(24 * time.Hour)
	given(t, bare).When(snooze(set(later))).Events(until(&later))
	given(t, bare, until(&later)).When(snooze(cleared[time.Time]())).Events(until(nil))
	given(t, bare, until(&later)).When(snooze(project.Field[time.Time]{})).Nothing()
	given(t, bare, until(&later)).When(snooze(set(later.In(time.FixedZone("", 3600))))).Nothing()
	kept := until(&later)
	kept.Name = "Store"
	given(t, bare, until(&later)).When(update(func(c *project.UpdateCommand) { c.Name = new("Store") })).Events(kept)
}
