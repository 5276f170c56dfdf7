package command_test

import (
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

func TestProjects(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	thirty := 30
	c := b.cause()
	p, err := b.CreateProject(t.Context(), c, command.CreateProject{
		Name: "Shop", DefaultSLAMinutes: &thirty, WebhookURL: "https://hooks.example.com/x",
	})
	must.NoError(t, err)
	again, err := newService(b.log).CreateProject(t.Context(), c, command.CreateProject{Name: "Shop", DefaultSLAMinutes: &thirty})
	if err != nil || again.HookToken != p.HookToken {
		t.Errorf("a repeat hands out the same hook token: %+v, %v", again, err)
	}
	secret, err := b.WebhookSecret(t.Context(), p.ProjectID)
	if err != nil || !strings.HasPrefix(secret, "whsec_") {
		t.Errorf("secret: %q, %v", secret, err)
	}
	t.Run("a job inherits the project's SLA", func(t *testing.T) {
		j, err := b.SubmitJob(t.Context(), b.cause(), command.SubmitJob{
			Submission: job.Submission{
				ProjectID: p.ProjectID, URL: "https://example.com", Title: "T", Type: job.Custom,
				TypeEcho: "Custom", Source: "api",
			},
		})
		if err != nil || j.EstimatedMinutes != 30 {
			t.Errorf("%+v, %v", j, err)
		}
	})
	t.Run("another account's project is not found", func(t *testing.T) {
		other := b.cause()
		other.AccountID = "somebody-else"
		_, err := b.SubmitJob(t.Context(), other, command.SubmitJob{Submission: job.Submission{ProjectID: p.ProjectID, Type: job.Custom}})
		wantKind(t, err, domain.KindNotFound)
		_, _, err = b.UpdateProject(t.Context(), other, p.ProjectID, command.UpdateProject{})
		wantKind(t, err, domain.KindNotFound)
	})
	t.Run("so no key of another account is bound to it", func(t *testing.T) {
		before := len(b.log.All())
		for account, project := range map[string]string{b.account: "no-such-project", "somebody-else": p.ProjectID} {
			_, err := b.IssueKey(t.Context(), operator(), account, command.IssueKey{Scope: "full", ProjectID: project})
			wantKind(t, err, domain.KindNotFound)
		}
		if after := len(b.log.All()); after != before {
			t.Errorf("%d events were written", after-before)
		}
		if _, err := b.IssueKey(t.Context(), operator(), b.account, command.IssueKey{Scope: "full", ProjectID: p.ProjectID}); err != nil {
			t.Error(err)
		}
	})
	t.Run("an update answers the settings after it", func(t *testing.T) {
		name := "Store"
		var update command.UpdateProject
		update.Name, update.DefaultSLAMinutes.Set = &name, true
		st, _, err := b.UpdateProject(t.Context(), b.cause(), p.ProjectID, update)
		if err != nil || st.Name != "Store" || st.DefaultSLAMinutes != nil || st.WebhookURL == "" {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

func TestAccountsAndKeys(t *testing.T) {
	t.Parallel()
	b := setup(t, 0)
	key, err := b.IssueKey(t.Context(), operator(), b.account, command.IssueKey{Scope: "full"})
	if err != nil || !strings.HasPrefix(key.Token, domain.LiveKeyPrefix) {
		t.Fatalf("%+v, %v", key, err)
	}
	for range 2 {
		if _, err := b.RevokeKey(t.Context(), operator(), b.account, key.KeyID); err != nil {
			t.Error(err)
		}
		if _, err := b.SuspendAccount(t.Context(), operator(), b.account); err != nil {
			t.Error(err)
		}
		if _, err := b.ReinstateAccount(t.Context(), operator(), b.account); err != nil {
			t.Error(err)
		}
	}
	_, _, err = b.GrantCredits(t.Context(), operator(), "nobody", 5, nil, "")
	wantKind(t, err, domain.KindNotFound)
}
