package command_test

import (
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/project"
	"humanqa/internal/testing/must"
)

func TestARotatedSecretIsShownOnceAndKnownAgainByItsCommand(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	p, err := b.CreateProject(t.Context(), b.cause(), command.CreateProject{Name: "Shop", WebhookURL: "https://hooks.example.com/x"})
	must.NoError(t, err)
	secret := func() string {
		t.Helper()
		plain, err := b.WebhookSecret(t.Context(), p.ProjectID)
		must.NoError(t, err)
		return plain
	}
	first, c := secret(), b.cause()
	rotated, err := b.RotateSecret(t.Context(), c, p.ProjectID, false)
	if err != nil || rotated.Secret == first || rotated.Secret != secret() || rotated.PreviousUntil == nil || rotated.RotatedAt == nil {
		t.Fatalf("rotated to %+v, %v", rotated, err)
	}
	// Whoever lost the answer asks the same again, of another process.
	again, err := newService(b.log).RotateSecret(t.Context(), c, p.ProjectID, false)
	if err != nil || again.Secret != rotated.Secret || !again.PreviousUntil.Equal(*rotated.PreviousUntil) {
		t.Errorf("a repeat gives %+v, %v", again, err)
	}
	_, err = b.RotateSecret(t.Context(), b.cause(), p.ProjectID, false)
	wantKind(t, err, domain.KindConflict)

	other := b.cause()
	other.AccountID = "somebody-else"
	_, err = b.RotateSecret(t.Context(), other, p.ProjectID, true)
	wantKind(t, err, domain.KindNotFound)
	_, err = b.FinishRotation(t.Context(), other, p.ProjectID)
	wantKind(t, err, domain.KindNotFound)

	for range 2 { // the second time there is nothing to finish
		done, err := b.FinishRotation(t.Context(), b.cause(), p.ProjectID)
		if err != nil || done.PreviousUntil != nil || !done.RotatedAt.Equal(*rotated.RotatedAt) || done.Secret != "" {
			t.Errorf("finished as %+v, %v", done, err)
		}
	}
	person := b.cause()
	person.Actor = "person:ann"
	leaked, err := b.RotateSecret(t.Context(), person, p.ProjectID, true)
	if err != nil || leaked.PreviousUntil != nil || leaked.Secret == rotated.Secret {
		t.Errorf("a leaked secret was replaced by %+v, %v", leaked, err)
	}
	_, err = b.RotateSecret(t.Context(), c, p.ProjectID, false)
	wantKind(t, err, domain.KindConflict) // its secret has been replaced since

	var who []string
	finished := 0
	err = b.log.Load(t.Context(), domain.ProjectStream(p.ProjectID), 0, func(r domain.Recorded) error {
		switch e := r.Event.(type) {
		case *project.SecretSet:
			switch {
			case e.UserID != nil:
				who = append(who, "person "+*e.UserID)
			default:
				who = append(who, "key "+e.KeyID)
			}
			if e.Sealed == "" || e.Sealed == rotated.Secret || e.Sealed == leaked.Secret {
				return errors.New("a secret lies open in the log")
			}
		case *project.RotationFinished:
			finished++
		}
		return nil
	})
	if err != nil || finished != 1 || len(who) != 3 || who[1] != "key k" || who[2] != "person ann" {
		t.Errorf("the log holds %v and %d ends, %v", who, finished, err)
	}
}
