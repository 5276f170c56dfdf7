package command_test

import (
	"slices"
	"testing"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// locked submits a job with both kinds of secrets, and claims it.
func (b bundle) locked(t *testing.T, checker string) command.Claim {
	t.Helper()
	j, err := b.SubmitJob(t.Context(), b.cause(), command.SubmitJob{
		Submission:  job.Submission{URL: "https://example.com", Title: "Title", Type: job.Custom, TypeEcho: "Custom", Source: "api"},
		Credentials: &command.Credentials{Username: "u", Password: "p"}, AccessInstructions: "ring twice",
	})
	must.NoError(t, err)
	claimed, err := b.ClaimJob(t.Context(), b.checkerCause(checker), checker, j.JobID)
	must.NoError(t, err)
	return command.Claim{CheckerID: checker, JobID: j.JobID, Token: claimed.Token}
}

// shown lists the secrets that the log says were shown of a job.
func (b bundle) shown(jobID string) (shown []job.SecretShown) {
	for _, r := range b.log.Stream(domain.JobStream(jobID)) {
		if e, is := r.Event.(*job.SecretShown); is {
			shown = append(shown, *e)
		}
	}
	return shown
}

func opened(brief command.Brief) bool {
	return brief.Credentials != nil && brief.Credentials.Password == "p" && brief.AccessInstructions == "ring twice"
}

// The append fails once persisted and once not. Nothing is shown then, and the repeat leaves
// one event of each kind.
func TestNoSecretIsShownWhoseEventWasNotWritten(t *testing.T) {
	t.Parallel()
	for _, persisted := range []bool{false, true} {
		t.Run(map[bool]string{true: "persisted", false: "lost"}[persisted], func(t *testing.T) {
			t.Parallel()
			b := setup(t, 100)
			ann := b.newChecker(t)
			claim := b.locked(t, ann)
			b.log.Fail(logtest.To(domain.JobStreams), persisted, errCut)
			brief, _, err := b.Reveal(t.Context(), b.checkerCause(ann), claim)
			if wantKind(t, err, domain.KindUnavailable); brief.Credentials != nil || brief.AccessInstructions != "" {
				t.Errorf("it shows %+v", brief)
			}
			b.log.Heal()
			for _, s := range []*command.Service{newService(b.log), b.Service} {
				if brief, _, err := s.Reveal(t.Context(), b.checkerCause(ann), claim); err != nil || !opened(brief) {
					t.Errorf("after it: %+v, %v", brief, err)
				}
			}
			wantTypes(t, b.log, domain.JobStream(claim.JobID), "job.created", "job.claimed", "job.secret_shown", "job.secret_shown")
		})
	}
}

func TestParallelRevealsInTwoProcessesWriteOneEventAKind(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann := b.newChecker(t)
	claim := b.locked(t, ann)
	services := []*command.Service{b.Service, newService(b.log)}
	good := together(64, func(i int) error {
		brief, _, err := services[i%2].Reveal(t.Context(), b.checkerCause(ann), claim)
		if err == nil && !opened(brief) {
			t.Errorf("it shows %+v", brief)
		}
		return err
	}, func(err error) { t.Error(err) })
	if kinds := b.shown(claim.JobID); good != 64 || len(kinds) != 2 || kinds[0].Kind != job.SecretCredentials || kinds[1].Kind != job.SecretAccess {
		t.Errorf("%d reveals wrote %+v", good, kinds)
	}
}

func TestAClaimAloneOpensNoSecret(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann := b.newChecker(t)
	claim := b.locked(t, ann)
	again, err := b.ClaimJob(t.Context(), b.checkerCause(ann), ann, claim.JobID)
	if err != nil || !again.Brief.HasSecrets || again.Brief.Credentials != nil || again.Brief.AccessInstructions != "" {
		t.Errorf("the claim has %+v, %v", again.Brief, err)
	}
	live, _, err := b.LiveClaim(t.Context(), ann)
	if err != nil || !live.Brief.HasSecrets || live.Brief.Credentials != nil || live.Brief.AccessInstructions != "" {
		t.Errorf("the live claim has %+v, %v", live.Brief, err)
	}
	if kinds := b.shown(claim.JobID); len(kinds) != 0 {
		t.Errorf("the log says that %+v were shown", kinds)
	}
	stale := claim
	stale.Token++
	_, _, err = b.Reveal(t.Context(), b.checkerCause(ann), stale)
	wantKind(t, err, domain.KindConflict)
}

// An account knows a checker again, and two accounts cannot compare whom they know. The
// event names no person, however the checker signed in.
func TestACheckersPseudonymIsStableInAnAccountAndAnotherOneElsewhere(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	ann := b.newChecker(t)
	var names []string
	seen := func(of bundle) {
		claim := of.locked(t, ann)
		cause := of.checkerCause(ann)
		cause.Actor, cause.AccountID = "person:p", "" // as from the workbench
		_, _, err := of.Reveal(t.Context(), cause, claim)
		must.NoError(t, err)
		for _, r := range of.log.Stream(domain.JobStream(claim.JobID)) {
			if r.Type == "job.secret_shown" && (r.Meta.Actor != "checker:"+ann || r.Meta.AccountID != of.account) {
				t.Errorf("the event is by %s in %s", r.Meta.Actor, r.Meta.AccountID)
			}
		}
		names = append(names, of.shown(claim.JobID)[0].Checker)
		_, err = of.ReleaseJob(t.Context(), of.checkerCause(ann), claim)
		must.NoError(t, err)
	}
	other := b
	account, _, err := b.CreateAccount(t.Context(), operator(), "Globex", false)
	must.NoError(t, err)
	_, _, err = b.GrantCredits(t.Context(), operator(), account, 100, nil, "")
	must.NoError(t, err)
	other.account = account
	seen(b)
	seen(b)
	seen(other)
	if names[0] != names[1] || names[0] == names[2] || len(names[0]) != 4 || slices.Contains(names, ann[:4]) {
		t.Errorf("the checker is called %q", names)
	}
}
