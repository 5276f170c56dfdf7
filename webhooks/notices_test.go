package webhooks_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/internal/mail"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/mailtest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks/notices"
)

// followNotices runs the subscriber until it is stopped.
func followNotices(b *hooktest.Bundle, people bool) (stop func()) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s := consumer.New(b.DB, b.Events, quiet, notices.New(b.DB, b.Events, people))
	s.SetLimits(consumer.Limits{
		Shared: time.Second,
		Live:   500, Rebuild: 500, Lease: 15 * time.Second, Take: 2 * time.Second,
		StandBy: 100 * time.Millisecond, Store: 20 * time.Millisecond,
		Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond, Retired: time.Hour, Report: time.Hour,
		Aside: 10, Again: time.Hour,
	})
	return b.RunLoop(s.Run)
}

func noticesPosition(b *hooktest.Bundle) domain.Position {
	all, err := consumer.List(context.Background(), b.DB)
	must.NoError(b, err)
	for _, s := range all {
		if s.Name == notices.Name {
			return s.Position
		}
	}
	return domain.Position{}
}

func noticesRead(b *hooktest.Bundle) {
	b.Helper()
	b.Eventually("the subscriber has read the log", func() bool { return noticesPosition(b).Commit == b.Events.Head().Commit })
}

// noticesOf lists the notices to a person, each in a line.
func noticesOf(b *hooktest.Bundle, personID string) (lines []string) {
	b.Helper()
	err := b.DB.Select(&lines, `SELECT kind || ' ' || failed || ' ' || project || '|' || title || '|' || verdict || '|' || path
		FROM mail.notices WHERE person_id = $1 ORDER BY 1`, personID)
	must.NoError(b, err)
	return lines
}

// hears is a person with a confirmed address, who chose before the events of hooktest.
func hears(b *hooktest.Bundle, personID, accountID string, c mail.Choices) {
	b.Helper()
	must.NoError(b, mail.NewStore(b.DB, time.Now, mailtest.Links()).Save(b.Context(), accountID, personID, personID+"@example.com", c))
	b.Exec(`UPDATE mail.people SET confirmed_at = $1`, hooktest.At.Add(-time.Hour))
	b.Exec(`UPDATE mail.choices SET since = $1`, hooktest.At.Add(-time.Hour))
}

func TestTheEventsOfAnAccountBecomeNoticesOfItsPeople(t *testing.T) {
	b := hooktest.Setup(t)
	everything := mail.Choices{Reports: mail.AllReports, Questions: true, Credits: true, Webhooks: true}
	hears(b, "ann", "acc", everything)
	hears(b, "bob", "acc", mail.Choices{Reports: mail.FailuresOnly})
	hears(b, "eve", "other", everything)
	b.Project("p1", "https://hooks.example", nil)
	b.Submit("p1", "j1")
	b.Submit("p1", "j2")
	b.Submit("", "j3")
	b.Submit("p1", "j4")
	stop := followNotices(b, true)
	noticesRead(b)
	stop() // what the log said before is not remembered
	good := hooktest.Completed()
	good.PassCount, good.FailCount, good.SkipCount, good.Items = 5, 0, 0, nil
	asked := &job.QuestionAsked{QuestionID: "q", Kind: "code", Text: "Which code?", At: hooktest.At, Until: hooktest.At.Add(30 * time.Minute)}
	b.Events.Add(domain.JobStream("j1"), hooktest.Claimed(), asked, hooktest.Completed())
	b.Events.Add(domain.JobStream("j2"), hooktest.Claimed(), good)
	b.Events.Add(domain.JobStream("j3"), &job.Failed{Reason: "sla", Refund: 5, At: hooktest.At})
	b.Events.Add(domain.CreditsStream("acc"), &credits.Debited{JobID: "j1", Amount: 5, BalanceAfter: 15}, &credits.Debited{JobID: "j2", Amount: 5, BalanceAfter: 10})
	b.Change("p1", &project.WebhookDisabled{DeliveryID: "d", Reason: "answered 500", At: hooktest.At})
	for range 2 { // in one hour: told once
		b.Events.Add(domain.AccountStream("acc"), &account.SubmissionsRefused{Counts: []account.RefusedCount{{Reason: domain.CodeInsufficientCredits, Source: "api", Tests: 2}}})
	}
	stop = followNotices(b, true)
	noticesRead(b)
	report := "report true p1|Checkout|3 of 5 failed, 1 skipped: a critical one|/dashboard/jobs/j1"
	failed := "report true |Checkout|Could not be tested. 5 credits refunded|/dashboard/jobs/j3"
	want := []string{
		"credits false |Credits are low|15 credits left|/dashboard/credits", failed,
		"credits false |Tests are refused|The overview has their number and the reason|/dashboard",
		"report false p1|Checkout|5 of 5 passed|/dashboard/jobs/j2", report,
		"webhook false p1|The webhook of p1 is disabled|Events are held. answered 500|/dashboard/projects/p1/webhook",
	}
	want = append(want, "question false p1|Checkout|The checker asks, and waits 30 minutes for your answer|/dashboard/jobs/j1#questions")
	slices.Sort(want)
	if got := noticesOf(b, "ann"); !slices.Equal(got, want) {
		t.Errorf("ann is told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := noticesOf(b, "bob"); len(got) != 2 || !slices.Contains(got, report) || !slices.Contains(got, failed) {
		t.Errorf("bob is told\n%s", strings.Join(got, "\n"))
	}
	if got := noticesOf(b, "eve"); len(got) != 0 {
		t.Errorf("a person of another account is told %q", got)
	}
	// As after a crash that lost the checkpoint, and not the rows.
	stop()
	b.Exec(`UPDATE projection_checkpoints SET commit_position = -1, prepare_position = -1 WHERE name = 'mail'`)
	stop = followNotices(b, true)
	noticesRead(b)
	if got := noticesOf(b, "ann"); !slices.Equal(got, want) {
		t.Errorf("after a repeat ann is told\n%s", strings.Join(got, "\n"))
	}
	stop()
	b.Events.Add(domain.AccountStream("acc"), &account.ErasureFinished{})
	b.Events.Add(domain.JobStream("j4"), hooktest.Claimed(), hooktest.Completed())
	followNotices(b, true)
	noticesRead(b)
	if n := len(noticesOf(b, "ann")) + len(noticesOf(b, "bob")); n != 0 {
		t.Errorf("%d notices are left of an account that was erased", n)
	}
}
