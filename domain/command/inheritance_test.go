package command_test

import (
	"context"
	"errors"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/eventstore/logtest"
	"humanqa/internal/must"
)

// recent is a process that has seen all of the log.
type recent struct{ *logtest.Memory }

func (r recent) Unchanged(_ context.Context, stream string, after, upTo domain.Position) bool {
	for _, e := range r.Stream(stream) {
		if after.Compare(e.Position) < 0 && e.Position.Compare(upTo) <= 0 {
			return false
		}
	}
	return true
}

func TestAJobGetsItsProjectsSLAAsOfItsCharge(t *testing.T) {
	t.Parallel()
	b := setup(t, 1000)
	b.Follow(recent{b.log})
	project := b.project(t, 30)
	other := newService(b.log) // another process
	change := func(minutes int) {
		t.Helper()
		_, _, err := other.UpdateProject(t.Context(), b.cause(), project, command.UpdateProject{DefaultSLAMinutes: command.Field[int]{Set: true, Value: &minutes}})
		must.NoError(t, err)
	}
	submit := func(change func(*command.SubmitJob)) int {
		t.Helper()
		in := plain()
		in.ProjectID = project
		change(&in)
		j, err := b.SubmitJob(t.Context(), b.cause(), in)
		must.NoError(t, err)
		return b.job(j.JobID).SLAMinutes
	}
	want := func(sla, wanted int) {
		t.Helper()
		if sla != wanted {
			t.Errorf("the job's SLA is %d, not %d", sla, wanted)
		}
	}
	asItIs := func(*command.SubmitJob) {}
	want(submit(asItIs), 30)

	t.Run("which the log is not asked for as long as the project is as it was", func(t *testing.T) {
		before := b.log.Loads()
		want(submit(asItIs), 30)
		if n := b.log.Loads() - before; n > 0 {
			t.Errorf("a submission read %d streams", n)
		}
	})
	t.Run("whoever changed it", func(t *testing.T) {
		change(15)
		want(submit(asItIs), 15)
		want(submit(asItIs), 15)
	})
	t.Run("unless it says its own", func(t *testing.T) {
		want(submit(func(in *command.SubmitJob) { in.SLAMinutes = 45 }), 45)
	})
	t.Run("in a batch, too", func(t *testing.T) {
		change(30)
		in := plain()
		in.ProjectID = project
		batch, err := b.SubmitBulk(t.Context(), b.cause(), []command.SubmitJob{in, plain(), in})
		must.NoError(t, err)
		for i, wanted := range []int{30, 60, 30} {
			want(b.job(batch.JobIDs[i]).SLAMinutes, wanted)
		}
	})
	t.Run("and a project that is known stays the account's", func(t *testing.T) {
		account, _, err := b.CreateAccount(t.Context(), operator(), "Other", false)
		must.NoError(t, err)
		stranger := b.cause()
		stranger.AccountID = account
		in := plain()
		in.ProjectID = project
		var refused *domain.Error
		if _, err := b.SubmitJob(t.Context(), stranger, in); !errors.As(err, &refused) || refused.Kind != domain.KindNotFound {
			t.Errorf("a stranger's submission: %v", err)
		}
		if n := b.log.Appends(domain.CreditsStream(account)); n > 0 {
			t.Errorf("it was charged: %d appends", n)
		}
	})
}
