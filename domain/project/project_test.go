package project_test

import (
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/project"
	"humanqa/internal/testing/scenario"
)

type decide = scenario.Decide[project.State]

var (
	t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	t1 = t0.Add(time.Hour)
)

const hook, otherHook = "https://acme.example/hook", "https://acme.example/other"

func given(t *testing.T, events ...domain.Event) *scenario.Given[project.State] {
	return scenario.New(t, project.Evolve, events...)
}

func list(names ...string) *[]string { l := append([]string{}, names...); return &l }

func created() domain.Event {
	return &project.Created{
		AccountID: "acme", Name: "Shop", HookHash: "hh", At: t0,
		Description: new("the shop"), DefaultURL: new("https://shop.example"),
		DefaultJobType: new("Payment Flow"), DefaultSLAMinutes: new(30),
	}
}

func webhook(url string, events *[]string) *project.WebhookSet {
	return &project.WebhookSet{URL: url, Events: events, At: t0}
}

func disabled() *project.WebhookDisabled {
	return &project.WebhookDisabled{DeliveryID: "d1", Reason: "500 four times", At: t0}
}

// fresh is the secret that a handler makes and passes in with every command.
func fresh() project.SecretSet {
	return project.SecretSet{SecretID: "s2", Sealed: "sealed-2", Fingerprint: "f2", At: t1}
}

// first is the secret a project already has.
func first() *project.SecretSet {
	return &project.SecretSet{SecretID: "s1", Sealed: "sealed-1", Fingerprint: "f1", At: t0}
}

func freshEvent(rotated bool) *project.SecretSet {
	s := fresh()
	s.Rotated = rotated
	return &s
}

func create(change func(*project.CreateCommand)) decide {
	return func(s project.State) ([]domain.Event, error) {
		c := project.CreateCommand{Opening: project.Opening{Name: "Shop"}, AccountID: "acme", HookHash: "hh", Secret: fresh(), At: t1}
		change(&c)
		return project.DecideCreate(s, c)
	}
}

func update(change func(*project.UpdateCommand)) decide {
	return func(s project.State) ([]domain.Event, error) {
		c := project.UpdateCommand{Secret: fresh(), At: t1}
		change(&c)
		return project.DecideUpdate(s, c)
	}
}

func set[T any](v T) project.Field[T] { return project.Field[T]{Set: true, Value: &v} }

func cleared[T any]() project.Field[T] { return project.Field[T]{Set: true} }

func TestAProjectIsCreated(t *testing.T) {
	t.Parallel()
	t.Run("with its settings alone", func(t *testing.T) {
		given(t).
			When(create(func(c *project.CreateCommand) {
				c.Description, c.DefaultURL, c.DefaultSLAMinutes = new("the shop"), new(""), new(15)
				c.Events = list("job.created")
			})).
			Happens(&project.Created{
				AccountID: "acme", Name: "Shop", HookHash: "hh", At: t1,
				Description: new("the shop"), DefaultSLAMinutes: new(15),
			})
	})
	t.Run("with a webhook, whose secret comes first and is no rotation", func(t *testing.T) {
		s := given(t).
			When(create(func(c *project.CreateCommand) {
				c.WebhookURL, c.Events, c.Secret.Rotated = hook, list("job.created"), true
			})).
			Happens(
				&project.Created{AccountID: "acme", Name: "Shop", HookHash: "hh", At: t1},
				freshEvent(false),
				&project.WebhookSet{URL: hook, Events: list("job.created"), At: t1},
			).
			State()
		if s.Secret.ID != "s2" || len(s.Rotations) != 0 || s.SecretRotatedAt != nil {
			t.Errorf("secret %+v, rotations %v, rotated at %v", s.Secret, s.Rotations, s.SecretRotatedAt)
		}
	})
	t.Run("naming everything that is wrong at once", func(t *testing.T) {
		given(t).
			When(create(func(c *project.CreateCommand) {
				c.Name, c.DefaultSLAMinutes = " ", new(20)
				c.Events = list("job.created", "job.claimed", "nonsense")
			})).
			Invalid("name", "defaultSlaMinutes", "subscribedWebhookEvents[1]", "subscribedWebhookEvents[2]")
	})
	t.Run("once", func(t *testing.T) {
		given(t, created()).When(create(func(*project.CreateCommand) {})).Conflict("the project exists already")
	})
}

func TestAnUpdateOfSettings(t *testing.T) {
	t.Parallel()
	unchanged := func() *project.SettingsChanged {
		return &project.SettingsChanged{
			Name: "Shop", Description: new("the shop"), DefaultURL: new("https://shop.example"),
			DefaultJobType: new("Payment Flow"), DefaultSLAMinutes: new(30), At: t1,
		}
	}
	t.Run("changes what is named and nothing else", func(t *testing.T) {
		want := unchanged()
		want.Name, want.DefaultSLAMinutes = "Store", new(60)
		s := given(t, created()).
			When(update(func(c *project.UpdateCommand) { c.Name, c.DefaultSLAMinutes = new("Store"), set(60) })).
			Events(want).
			State()
		if s.Name != "Store" || *s.Description != "the shop" || !s.CreatedAt.Equal(t0) || !s.UpdatedAt.Equal(t1) {
			t.Errorf("the project is %+v", s)
		}
	})
	t.Run("clears by null and by the empty string", func(t *testing.T) {
		want := unchanged()
		want.Description, want.DefaultURL, want.DefaultJobType, want.DefaultSLAMinutes = nil, nil, nil, nil
		given(t, created()).
			When(update(func(c *project.UpdateCommand) {
				c.Description, c.DefaultURL, c.DefaultJobType = set(""), cleared[string](), set("")
				c.DefaultSLAMinutes = cleared[int]()
			})).
			Events(want)
	})
	t.Run("to what they are already changes nothing", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, list("job.created"))).
			When(update(func(c *project.UpdateCommand) {
				c.Name, c.Description, c.DefaultURL = new("Shop"), set("the shop"), set("https://shop.example")
				c.DefaultJobType, c.DefaultSLAMinutes = set("Payment Flow"), set(30)
				c.WebhookURL, c.Events = new(hook), list("job.created")
			})).
			Nothing()
	})
	t.Run("that names nothing changes nothing", func(t *testing.T) {
		given(t, created()).When(update(func(*project.UpdateCommand) {})).Nothing()
	})
	t.Run("names everything that is wrong and changes nothing", func(t *testing.T) {
		given(t, created()).
			When(update(func(c *project.UpdateCommand) {
				c.Name, c.DefaultSLAMinutes, c.Events = new(""), set(45), list("job.failed_sla")
				c.Description = set("new")
			})).
			Invalid("name", "defaultSlaMinutes", "subscribedWebhookEvents[0]")
	})
	t.Run("needs a project", func(t *testing.T) {
		given(t).When(update(func(*project.UpdateCommand) {})).NotFound("project")
	})
}

func TestAnUpdateOfTheWebhook(t *testing.T) {
	t.Parallel()
	url := func(u string) func(*project.UpdateCommand) {
		return func(c *project.UpdateCommand) { c.WebhookURL = &u }
	}
	events := func(names ...string) func(*project.UpdateCommand) {
		return func(c *project.UpdateCommand) { c.Events = list(names...) }
	}
	at := func(e *project.WebhookSet) *project.WebhookSet { e.At = t1; return e }

	t.Run("attaches the first URL with a secret and every event", func(t *testing.T) {
		given(t, created()).When(update(url(hook))).Events(freshEvent(false), at(webhook(hook, nil)))
	})
	t.Run("keeps the secret and the list when the URL moves", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, list("job.created"))).
			When(update(url(otherHook))).
			Events(at(webhook(otherHook, list("job.created"))))
	})
	t.Run("clears URL and list and keeps the secret", func(t *testing.T) {
		s := given(t, created(), first(), webhook(hook, list("job.created")), disabled()).
			When(update(url(""))).
			Events(&project.WebhookCleared{At: t1}).
			State()
		if s.WebhookURL != "" || s.Events != nil || s.Disabled || s.Secret.ID != "s1" {
			t.Errorf("the project is %+v", s)
		}
	})
	t.Run("uses the kept secret when a URL comes back", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, list()), &project.WebhookCleared{At: t0}).
			When(update(url(hook))).
			Events(at(webhook(hook, nil)))
	})
	t.Run("that clears nothing changes nothing", func(t *testing.T) {
		given(t, created()).When(update(url(""))).Nothing()
	})
	t.Run("replaces the list where a URL is configured", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, nil)).
			When(update(events("job.completed"))).
			Events(at(webhook(hook, list("job.completed"))))
	})
	t.Run("tells the empty list from every event", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, nil)).When(update(events())).Events(at(webhook(hook, list())))
	})
	t.Run("passes over a list that has no URL", func(t *testing.T) {
		given(t, created()).When(update(events("job.completed"))).Nothing()
		given(t, created(), first(), webhook(hook, nil)).
			When(update(func(c *project.UpdateCommand) { c.WebhookURL, c.Events = new(""), list("job.completed") })).
			Events(&project.WebhookCleared{At: t1})
	})
	t.Run("applies a list that comes with its URL", func(t *testing.T) {
		given(t, created()).
			When(update(func(c *project.UpdateCommand) { c.WebhookURL, c.Events = new(hook), list("job.completed") })).
			Events(freshEvent(false), at(webhook(hook, list("job.completed"))))
	})
	t.Run("re-enables by naming the URL, the same one too", func(t *testing.T) {
		given(t, created(), first(), webhook(hook, nil), disabled()).
			When(update(url(hook))).
			Events(&project.WebhookEnabled{At: t1})
		s := given(t, created(), first(), webhook(hook, nil), disabled()).
			When(update(url(otherHook))).
			Events(at(webhook(otherHook, nil))).
			State()
		if s.Disabled {
			t.Error("the webhook is still disabled")
		}
	})
	t.Run("does not re-enable by a list alone", func(t *testing.T) {
		still := disabled()
		still.At = t1
		s := given(t, created(), first(), webhook(hook, nil), disabled()).
			When(update(events("job.completed"))).
			Events(at(webhook(hook, list("job.completed"))), still).
			State()
		if !s.Disabled || s.DisabledBy != "d1" || s.DisabledReason != "500 four times" {
			t.Errorf("the project is %+v", s)
		}
	})
}

func TestAWebhookIsDisabledUntilItIsEnabled(t *testing.T) {
	t.Parallel()
	disable := func(s project.State) ([]domain.Event, error) {
		return project.DecideDisable(s, "d1", "500 four times", t0)
	}
	enable := func(s project.State) ([]domain.Event, error) { return project.DecideEnable(s, t1) }

	given(t, created(), first(), webhook(hook, nil)).When(disable).Events(disabled())
	given(t, created(), first(), webhook(hook, nil), disabled()).When(enable).Events(&project.WebhookEnabled{At: t1})
	given(t, created(), first(), webhook(hook, nil)).When(enable).Nothing()
	given(t, created()).When(disable).Nothing()
	given(t, created()).When(enable).Conflict("the project has no webhook")
	given(t).When(disable).NotFound("project")
	given(t).When(enable).NotFound("project")
}

func TestARotation(t *testing.T) {
	t.Parallel()
	until := t1.Add(project.Overlap)
	rotateAt := func(id string, wall time.Time, overlap *time.Time) func(project.State) ([]domain.Event, error) {
		return func(s project.State) ([]domain.Event, error) {
			next := fresh()
			next.SecretID, next.PreviousUntil = id, overlap
			return project.DecideRotate(s, next, wall)
		}
	}
	finishAt := func(wall time.Time) func(project.State) ([]domain.Event, error) {
		return func(s project.State) ([]domain.Event, error) {
			return project.DecideFinish(s, project.RotationFinished{At: t1, KeyID: "k"}, wall)
		}
	}
	replaced := func(id string, overlap *time.Time) *project.SecretSet {
		e := freshEvent(true)
		e.SecretID, e.PreviousUntil = id, overlap
		return e
	}
	before := []domain.Event{created(), first(), webhook(hook, nil)}
	during := append(slices.Clone(before), replaced("s2", &until))

	t.Run("replaces the secret, which signs on for a day, and is remembered", func(t *testing.T) {
		s := given(t, before...).When(rotateAt("s2", t1, &until)).Events(replaced("s2", &until)).State()
		if s.Secret.Fingerprint != "f2" || len(s.Rotations) != 1 || !s.Rotations[0].At.Equal(t1) || !s.SecretRotatedAt.Equal(t1) || !s.PreviousUntil.Equal(until) {
			t.Errorf("the project is %+v", s)
		}
	})
	t.Run("needs a webhook", func(t *testing.T) {
		given(t, created()).When(rotateAt("s2", t1, &until)).Conflict("the project has no webhook")
		given(t, created()).When(finishAt(t1)).Conflict("the project has no webhook")
	})
	t.Run("needs a project", func(t *testing.T) {
		given(t).When(rotateAt("s2", t1, &until)).NotFound("project")
		given(t).When(finishAt(t1)).NotFound("project")
	})
	t.Run("is not followed by another one while it overlaps, unless the secret leaked", func(t *testing.T) {
		given(t, during...).When(rotateAt("s3", until.Add(-1), &until)).Conflict("the last rotation is not finished")
		s := given(t, during...).When(rotateAt("s3", t1, nil)).Events(replaced("s3", nil)).State()
		if s.PreviousUntil != nil {
			t.Error("a leaked secret signs on")
		}
		given(t, during...).When(rotateAt("s3", until, &until)).Events(replaced("s3", &until))
	})
	t.Run("ends early when it is finished, once", func(t *testing.T) {
		done := &project.RotationFinished{At: t1, KeyID: "k"}
		s := given(t, during...).When(finishAt(t1)).Events(done).State()
		if s.PreviousUntil != nil || s.Secret.ID != "s2" {
			t.Errorf("the project is %+v", s)
		}
		given(t, append(slices.Clone(during), done)...).When(finishAt(t1)).Nothing()
		given(t, during...).When(finishAt(until)).Nothing()
		given(t, before...).When(finishAt(t1)).Nothing()
	})
	t.Run("comes once, however often it is asked for", func(t *testing.T) {
		given(t, during...).When(rotateAt("s2", t1, &until)).Nothing()
		given(t, append(slices.Clone(during), replaced("s3", nil))...).When(rotateAt("s2", t1, &until)).Conflict("the secret was rotated once more since")
	})
	t.Run("is shown while it is among the last five, the newest last", func(t *testing.T) {
		events := []domain.Event{created(), first()}
		for n := range 7 {
			user := string(rune('a' + n))
			events = append(events, &project.SecretSet{
				SecretID: user, Fingerprint: user, At: t0.Add(time.Duration(n) * time.Minute), UserID: &user, Rotated: true,
			})
		}
		s := given(t, events...).State()
		var users string
		for _, r := range s.Rotations {
			users += *r.UserID
		}
		if users != "cdefg" || !s.SecretRotatedAt.Equal(t0.Add(6*time.Minute)) {
			t.Errorf("the rotations are of %q, the last at %v", users, s.SecretRotatedAt)
		}
	})
}

func TestADeployHookIsReplacedOnce(t *testing.T) {
	t.Parallel()
	rotated := project.HookRotated{HookID: "h2", HookHash: "hash-2", At: t1, UserID: new("ann")}
	rotate := func(s project.State) ([]domain.Event, error) { return project.DecideRotateHook(s, rotated) }
	if s := given(t, created()).When(rotate).Events(&rotated).State(); s.HookHash != "hash-2" || s.HookID != "h2" {
		t.Errorf("the project's hook is %q, %q", s.HookID, s.HookHash)
	}
	given(t, created(), &rotated).When(rotate).Nothing()
	given(t).When(rotate).NotFound("project")
}
