package command_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

// logReads finds waiting tests in the log itself: its read models are never behind.
type logReads struct {
	commandtest.NoReads
	log *logtest.Memory
}

func (r logReads) Waiting(_ context.Context, accountID, projectID string, limit int) (ids []string, err error) {
	jobs := map[string]job.State{}
	for _, e := range r.log.All() {
		if strings.HasPrefix(e.Stream, domain.JobStreams) {
			jobs[e.StreamID()] = job.Evolve(jobs[e.StreamID()], e.Event)
		}
	}
	for id, st := range jobs {
		if st.AccountID == accountID && st.ProjectID == projectID && st.Status == job.StatusPending && len(ids) < limit {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// archiveStage is a stage with a project.
type archiveStage struct {
	stage
	project string
}

func setArchiveStage(t *testing.T) archiveStage {
	t.Helper()
	s := archiveStage{stage: setStage(t, 100)}
	s.service = func() *command.Service {
		return command.New(command.Deps{
			Log: s.log, Sealer: openSealer{}, AI: s.ai, Reads: logReads{log: s.log}, ClaimsPerChecker: 1,
			Now: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) },
		})
	}
	s.Service = s.service()
	s.project = s.stage.project(t, 30)
	return s
}

func (s archiveStage) in(submit command.SubmitJob) command.SubmitJob {
	submit.ProjectID = s.project
	return submit
}

func (s archiveStage) submitted(t *testing.T) string {
	t.Helper()
	j, err := s.SubmitJob(t.Context(), s.cause(), s.in(plain()))
	must.NoError(t, err)
	return j.JobID
}

func (s archiveStage) archive(t *testing.T) {
	t.Helper()
	_, _, err := s.service().ArchiveProject(t.Context(), s.cause(), s.project, true, command.CancelledAtOnce)
	must.NoError(t, err)
}

func (s archiveStage) wants(t *testing.T, jobID string, status job.Status, used domain.Credits) {
	t.Helper()
	if st := s.job(jobID); st.Status != status || s.ledger().Used() != used {
		t.Errorf("the test is %s and %d credits are used, want %s and %d", st.Status, s.ledger().Used(), status, used)
	}
}

func TestAnArchiveThatCrashesAnywhereIsMadeWhole(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]logtest.AppendFilter{
		"before the cancellation": logtest.Of("job.cancelled"), "before the refund": logtest.Of("credits.refunded"),
	} {
		for _, persisted := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := setArchiveStage(t)
				id := s.submitted(t)
				s.log.Fail(cut, persisted, errCut)
				_, _, err := s.ArchiveProject(t.Context(), s.cause(), s.project, true, command.CancelledAtOnce)
				wantKind(t, err, domain.KindUnavailable)
				s.log.Heal()
				s.settle(t)
				s.wants(t, id, job.StatusCancelled, 0)
				if st := s.job(id); st.CancelReason != job.CancelArchived {
					t.Errorf("the reason is %s", st.CancelReason)
				}
			})
		}
	}
}

// The submission has asked the project, and the archive comes before its charge, or its job.
func TestASubmissionAtTheMomentOfAnArchiveLeavesNoTestWaiting(t *testing.T) {
	t.Parallel()
	for _, before := range []string{domain.CreditsStreams, domain.JobStreams} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			s := setArchiveStage(t)
			s.between(before, func() { s.archive(t) })
			id := s.submitted(t)
			s.wants(t, id, job.StatusPending, 5)
			s.settle(t)
			s.wants(t, id, job.StatusCancelled, 0)
		})
	}
}

func TestAProjectThatIsArchivedBetweenLookAndChargeTakesNoHostedTest(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	in := aTest()
	in.ProjectID, in.Webhook.URL = s.project, "https://hooks.example.com/in"
	s.between(domain.ProjectStreams, func() { s.archive(t) }) // before the test writes its webhook
	_, err := s.TestHosted(t.Context(), s.cause(), in)
	wantKind(t, err, domain.KindConflict)
	if s.ledger().Used() != 0 {
		t.Error("it was charged")
	}
}

// What came before the archive, and goes on, is answered as the first time.
func TestARepeatOfASubmissionAfterAnArchiveFindsItsTests(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	one, many := s.cause(), s.cause()
	first, err := s.SubmitJob(t.Context(), one, s.in(plain()))
	must.NoError(t, err)
	two := []command.SubmitJob{s.in(plain()), s.in(plain())}
	batch, err := s.SubmitBulk(t.Context(), many, two)
	must.NoError(t, err)
	for _, id := range append(batch.JobIDs, first.JobID) {
		s.claimed(t, id)
	}
	s.archive(t)
	again, err := s.SubmitJob(t.Context(), one, s.in(plain()))
	if err != nil || again.JobID != first.JobID {
		t.Errorf("the repeat made %+v, %v", again, err)
	}
	if same, err := s.SubmitBulk(t.Context(), many, two); err != nil || same.BatchID != batch.BatchID {
		t.Errorf("the repeat made %+v, %v", same, err)
	}
	for _, id := range append(batch.JobIDs, first.JobID) {
		s.wants(t, id, job.StatusClaimed, 15)
	}
}

// A batch of which only a part came is not finished in an archived project.
func TestABatchThatWasCutOffBeforeAnArchiveIsNotFinishedAfterIt(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	c := s.cause()
	submit := func() error {
		_, err := s.SubmitBulk(t.Context(), c, []command.SubmitJob{s.in(plain()), s.in(plain())})
		return err
	}
	s.cutOff(t, 2, submit)
	s.archive(t)
	wantKind(t, submit(), domain.KindConflict)
	s.settle(t)
	if used := s.ledger().Used(); used != 0 {
		t.Errorf("%d credits are used", used)
	}
}

func TestATakenTestOfAnArchivedProjectGoesOnAndDoesNotWaitAgain(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	done, missed := s.submitted(t), s.submitted(t)
	claim, late := s.claimed(t, done), s.claimed(t, missed)
	s.archive(t)
	s.checkAll(t, claim)
	_, _, err := s.CompleteJob(t.Context(), s.checkerCause(claim.CheckerID), claim, command.CompleteJob{Summary: "done"})
	must.NoError(t, err)
	s.pass(31 * time.Minute)
	s.log.Fail(logtest.Of("job.cancelled"), false, errCut)
	cause := s.cause()
	_, err = s.MissSLA(t.Context(), cause, late.JobID)
	wantKind(t, err, domain.KindUnavailable)
	s.log.Heal()
	for range 2 { // the timer fires again
		_, err = s.MissSLA(t.Context(), cause, late.JobID)
		must.NoError(t, err)
	}
	wantTypes(t, s.log, domain.JobStream(missed), "job.created", "job.claimed", "job.failed_sla", "job.cancelled")
	s.wants(t, done, job.StatusCompleted, 5)
}

func TestARestoredProjectLosesNoTest(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	s.archive(t)
	wantKind(t, func() error { _, err := s.SubmitJob(t.Context(), s.cause(), s.in(plain())); return err }(), domain.KindConflict)
	for range 2 { // a repeat changes nothing
		_, _, err := s.ArchiveProject(t.Context(), s.cause(), s.project, false, command.CancelledAtOnce)
		must.NoError(t, err)
	}
	id := s.submitted(t)
	_, err := s.SettleArchive(t.Context(), s.cause(), s.project) // of a timer that had begun to fire
	must.NoError(t, err)
	s.wants(t, id, job.StatusPending, 5)
	wantTypes(t, s.log, domain.ProjectStream(s.project), "project.created", "project.archived", "project.restored")
}

// A lobby waits; a session that has begun does not.
func TestAnArchiveCancelsLobbiesOnly(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	in := aSession(2)
	in.Test.ProjectID = s.project
	lobby, err := s.CreateSession(t.Context(), s.cause(), in)
	must.NoError(t, err)
	begun, err := s.CreateSession(t.Context(), s.cause(), in)
	must.NoError(t, err)
	s.waiting(t, begun, 1)
	s.waiting(t, begun, 2)
	_, out, err := s.ArchiveProject(t.Context(), s.cause(), s.project, true, command.CancelledAtOnce)
	must.NoError(t, err)
	if out.Cancelled != 2 || out.CreditsRefunded != lobby.CreditsDeducted {
		t.Errorf("the archive answers %+v", out)
	}
	for _, slot := range lobby.Slots {
		s.wants(t, slot.JobID, job.StatusCancelled, begun.CreditsDeducted)
	}
	for _, slot := range begun.Slots {
		s.wants(t, slot.JobID, job.StatusClaimed, begun.CreditsDeducted)
	}
}

func TestOnlyTheProjectsAccountArchivesIt(t *testing.T) {
	t.Parallel()
	s := setArchiveStage(t)
	stranger := s.cause()
	stranger.AccountID = "somebody-else"
	s.nothing(t, func() {
		_, _, err := s.ArchiveProject(t.Context(), stranger, s.project, true, command.CancelledAtOnce)
		wantKind(t, err, domain.KindNotFound)
	})
	_, err := project.DecideArchive(project.State{}, true, project.Ordered{})
	wantKind(t, err, domain.KindNotFound)
}
