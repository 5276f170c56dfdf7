package job_test

import (
	"slices"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/job"
)

// withReport is a job with a report: i1 failed, i2 passed.
func withReport() []domain.Event {
	list := submission().Items
	return []domain.Event{created(), claimedBy("ann", 1), &job.Completed{
		ReportID: "r1", OverallStatus: "fail", PassCount: 1, FailCount: 1, At: minute(20),
		Items: []job.ReportItem{{Item: list[0], Status: job.ItemFail, Note: "a blank page"}, {Item: list[1], Status: job.ItemPass}},
	}}
}

// then is a history that goes on.
func then(history []domain.Event, more ...domain.Event) []domain.Event {
	return slices.Concat(history, more)
}

func dispute(id, item string, at time.Time) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideDispute(s, id, item, "It works here.", at) }
}

func disputed(id, item string, verdict job.ItemStatus) *job.Disputed {
	return &job.Disputed{
		DisputeID: id, ItemID: item, Verdict: verdict, Reason: "It works here.", AnswerUntil: minute(30 + 24*60), At: minute(30),
	}
}

func answerDispute(checker, id, text string, at time.Time) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideAnswerDispute(s, checker, id, text, at) }
}

func rule(id string, ruling job.Ruling) decide {
	return func(s job.State) ([]domain.Event, error) { return job.DecideRule(s, id, ruling, minute(90)) }
}

// ruled is a decision that leaves the report as it is.
func ruled(id, item, key string, ruling job.Ruling) *job.DisputeDecided {
	return &job.DisputeDecided{
		DisputeID: id, ItemID: item, Key: key, Decision: ruling, Before: "fail", OverallStatus: "fail", PassCount: 1, FailCount: 1,
		HealthScore: 75, At: minute(90),
	}
}

func TestADispute(t *testing.T) {
	t.Parallel()
	done := withReport()
	t.Run("names the verdict, and when the checker may answer", func(t *testing.T) {
		given(t, done...).When(dispute("d1", "i1", minute(30))).Events(disputed("d1", "i1", job.ItemFail))
	})
	t.Run("needs a report that is at most 14 days old", func(t *testing.T) {
		last := minute(20).Add(job.DisputeWithin)
		given(t, done...).When(dispute("d1", "i1", last.Add(time.Millisecond))).Conflict("the report is older than 14 days")
		late := disputed("d1", "i1", job.ItemFail)
		late.At, late.AnswerUntil = last, last.Add(job.DisputeAnswerWithin)
		given(t, done...).When(dispute("d1", "i1", last)).Events(late)
		given(t, created()).When(dispute("d1", "i1", minute(30))).Conflict("the job is pending")
		given(t).When(dispute("d1", "i1", minute(30))).NotFound("job")
		given(t, done...).When(dispute("d1", "i9", minute(30))).Invalid("itemId")
		given(t, done...).When(func(s job.State) ([]domain.Event, error) {
			return job.DecideDispute(s, "d1", "i1", " ", minute(30))
		}).Invalid("reason")
	})
	t.Run("is one an item, and none after the decision", func(t *testing.T) {
		open := then(done, disputed("d1", "i1", job.ItemFail))
		given(t, open...).When(dispute("d1", "i1", minute(40))).Nothing()
		given(t, open...).When(dispute("d2", "i1", minute(40))).Conflict("the verdict is disputed already")
		decided := then(open, ruled("d1", "i1", "log-in", job.Stands))
		given(t, decided...).When(dispute("d2", "i1", minute(99))).Conflict("a dispute of the verdict was decided: stands")
		given(t, decided...).When(dispute("d2", "i2", minute(30))).Events(disputed("d2", "i2", job.ItemPass))
	})
	t.Run("is answered once, by the checker who tested, within a day", func(t *testing.T) {
		open := then(done, disputed("d1", "i1", job.ItemFail))
		said := &job.DisputeAnswered{DisputeID: "d1", ItemID: "i1", Text: "See the film.", At: minute(40)}
		given(t, open...).When(answerDispute("ann", "d1", said.Text, minute(40))).Events(said)
		given(t, open...).When(answerDispute("bob", "d1", said.Text, minute(40))).NotFound("job")
		given(t, open...).When(answerDispute("ann", "d2", said.Text, minute(40))).NotFound("dispute")
		given(t, open...).When(answerDispute("ann", "d1", "", minute(40))).Invalid("text")
		given(t, open...).When(answerDispute("ann", "d1", said.Text, minute(31+24*60))).Conflict("the dispute could be answered until 2026-11-22T09:30:00Z")
		given(t, append(open, said)...).When(answerDispute("ann", "d1", said.Text, minute(50))).Nothing()
		given(t, append(open, said)...).When(answerDispute("ann", "d1", "Oh.", minute(50))).Conflict("the dispute is answered already")
		given(t, append(open, ruled("d1", "i1", "log-in", job.Stands))...).When(answerDispute("ann", "d1", "Oh.", minute(99))).
			Conflict("the dispute was decided: stands")
	})
	t.Run("of an erased job is over", func(t *testing.T) {
		erased := then(done, disputed("d1", "i1", job.ItemFail), &job.Erased{By: "op", Reason: "asked", At: minute(50)})
		s := given(t, erased...).State()
		if s.Disputes[0].Reason != domain.ErasedText {
			t.Errorf("the reason reads %q", s.Disputes[0].Reason)
		}
		given(t, erased...).When(dispute("d2", "i2", minute(60))).Conflict("the job was erased")
		given(t, erased...).When(answerDispute("ann", "d1", "Oh.", minute(60))).Conflict("the job was erased")
		given(t, erased...).When(rule("d1", job.Refunded)).Conflict("the job was erased")
	})
}

func TestADecisionOnADispute(t *testing.T) {
	t.Parallel()
	open := then(withReport(), disputed("d1", "i1", job.ItemFail), disputed("d2", "i2", job.ItemPass))
	t.Run("is made once", func(t *testing.T) {
		given(t, open...).When(rule("d1", job.Stands)).Events(ruled("d1", "i1", "log-in", job.Stands))
		decided := then(open, ruled("d1", "i1", "log-in", job.Stands))
		given(t, decided...).When(rule("d1", job.Stands)).Nothing()
		given(t, decided...).When(rule("d1", job.Refunded)).Conflict("the dispute was decided already: stands")
		given(t, open...).When(rule("d9", job.Stands)).NotFound("dispute")
		given(t, open...).When(rule("d1", "perhaps")).Invalid("decision")
		given(t).When(rule("d1", job.Stands)).NotFound("job")
	})
	t.Run("makes the test good once, by its price or by a new test", func(t *testing.T) {
		refund := ruled("d1", "i1", "log-in", job.Refunded)
		refund.Refund = 5
		given(t, open...).When(rule("d1", job.Refunded)).Events(refund)
		for _, second := range []job.Ruling{job.Refunded, job.Retested} {
			given(t, append(open, refund)...).When(rule("d2", second)).Conflict("another dispute of the test was decided: refund")
		}
		given(t, append(open, refund)...).When(rule("d2", job.Stands)).Events(ruled("d2", "i2", "pay", job.Stands))
		retest := ruled("d1", "i1", "log-in", job.Retested)
		given(t, append(open, retest)...).When(rule("d2", job.Refunded)).Conflict("another dispute of the test was decided: retest")
		free := append([]domain.Event{created(func(c *job.Created) { c.Price = 0 })}, open[1:]...)
		given(t, free...).When(rule("d1", job.Refunded)).Conflict("the test was free")
	})
	t.Run("is settled once", func(t *testing.T) {
		settle := func(s job.State) ([]domain.Event, error) { return job.DecideSettleDispute(s, "j2", minute(91)) }
		given(t, open...).When(settle).Nothing()
		settled := &job.DisputeSettled{DisputeID: "d1", RetestJobID: "j2", At: minute(91)}
		retest := then(open, ruled("d1", "i1", "log-in", job.Retested))
		given(t, retest...).When(settle).Events(settled)
		given(t, append(retest, settled)...).When(settle).Nothing()
	})
}

func TestAnOverturnedVerdictCountsNoMore(t *testing.T) {
	t.Parallel()
	done := then(withReport(), &job.AIReportReady{AIReport: job.AIReport{
		ID: "a1", HealthScore: 75, PassCount: 1, FailCount: 1, Bugs: []job.Bug{{ItemID: "i1", Title: "Log in"}}, At: minute(21),
	}}, disputed("d1", "i1", job.ItemFail))
	report := done[2].(*job.Completed)
	overturned := &job.DisputeDecided{
		DisputeID: "d1", ItemID: "i1", Key: "log-in", Decision: job.Overturned, Before: "fail", OverallStatus: "pass",
		PassCount: 1, SkipCount: 1, HealthScore: 100, At: minute(90),
	}
	s := given(t, done...).When(rule("d1", job.Overturned)).Events(overturned).State()
	item, _ := s.ReportItem("i1")
	if item.Status != job.ItemSkip || item.Reason != job.SkipDisputed || item.Note != "a blank page" {
		t.Errorf("the item is %+v", item)
	}
	if r := s.Report; r.OverallStatus != "pass" || r.PassCount != 1 || r.FailCount != 0 || r.SkipCount != 1 {
		t.Errorf("the report is %+v", r)
	}
	if a := s.AIReport; a.HealthScore != 100 || len(a.Bugs) != 0 || a.FailCount != 0 || a.SkipCount != 1 {
		t.Errorf("the analysis is %+v", a)
	}
	if report.FailCount != 1 || report.Items[0].Status != job.ItemFail {
		t.Errorf("the event of the report has changed to %+v", report)
	}
	t.Run("in an analysis that was begun before", func(t *testing.T) {
		given(t, append(withReport(), disputed("d1", "i1", job.ItemFail), overturned)...).When(func(s job.State) ([]domain.Event, error) {
			return job.DecideAnalysed(s, job.AIReport{ID: "a1", HealthScore: 75, FailCount: 1, Bugs: []job.Bug{{ItemID: "i1"}, {Title: "Other"}}})
		}).Events(&job.AIReportReady{AIReport: job.AIReport{
			ID: "a1", HealthScore: 100, PassCount: 1, SkipCount: 1, Bugs: []job.Bug{{Title: "Other"}},
		}})
	})
}
