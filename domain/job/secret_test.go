package job_test

import (
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
)

func withSecrets(c *job.Created) { c.Credentials, c.AccessInstructions = "sealed-login", "sealed-door" }

func shows(checker string, token int) decide {
	return func(s job.State) ([]domain.Event, error) {
		return job.DecideShowSecrets(s, checker, token, "7F3A", minute(7))
	}
}

func shown(kind string, claim int) domain.Event {
	return &job.SecretShown{Kind: kind, Claim: claim, Checker: "7F3A", At: minute(7)}
}

func TestASecretIsShownOncePerClaimAndKind(t *testing.T) {
	t.Parallel()
	login, door, code := shown(job.SecretCredentials, 1), shown(job.SecretAccess, 1), shown(job.SecretAnswer, 1)
	claimed := []domain.Event{created(withSecrets), claimedBy("ann", 1)}
	with := func(more ...domain.Event) []domain.Event {
		return append(append([]domain.Event{}, claimed...), more...)
	}
	given(t, claimed...).When(shows("ann", 1)).Events(login, door)
	given(t, with(login)...).When(shows("ann", 1)).Events(door)
	given(t, with(login, door)...).When(shows("ann", 1)).Nothing()
	t.Run("a secret that came with an answer is a kind of its own, once", func(t *testing.T) {
		first := with(login, door, asked("q", 6, 36), answered("q", "a", 7, 31))
		given(t, first...).When(shows("ann", 1)).Events(code)
		given(t, append(first, code, asked("r", 8, 38), answered("r", "b", 9, 32))...).When(shows("ann", 1)).Nothing()
	})
	t.Run("the next claim is told anew", func(t *testing.T) {
		given(t, with(login, door, released(1), claimedBy("bob", 2))...).When(shows("bob", 2)).
			Events(shown(job.SecretCredentials, 2), shown(job.SecretAccess, 2))
	})
	t.Run("a job without secrets shows none", func(t *testing.T) {
		given(t, created(), claimedBy("ann", 1)).When(shows("ann", 1)).Nothing()
	})
	t.Run("only the live claimant sees them", func(t *testing.T) {
		given(t, claimed...).When(shows("bob", 1)).Conflict("the job is claimed by another checker")
		given(t, claimed...).When(shows("ann", 2)).Conflict("the claim token is stale")
		given(t, with(released(1))...).When(shows("ann", 1)).Conflict("the claim has ended")
	})
}
