package webhooks_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/project"
	"humanqa/internal/mail"
	"humanqa/internal/testing/hooktest"
)

func chatSet(sealed, reports, ended string) *project.ChatSet {
	c := project.Chat{Sealed: sealed, Address: "hooks.slack.com …a1b2", Reports: reports, Ended: ended}
	if sealed+ended == "" {
		c = project.Chat{}
	}
	return &project.ChatSet{Chat: c, ChangeID: sealed + reports + ended, At: hooktest.At}
}

func TestTheEventsOfAProjectBecomeNoticesOfItsChat(t *testing.T) {
	b := hooktest.Setup(t)
	hears(b, "ann", "acc", mail.Choices{Reports: mail.NoReports, Webhooks: true})
	set := func(projectID string, e *project.ChatSet) {
		t.Helper()
		b.Change(projectID, e)
	}
	early := func() { // before the events of hooktest, which have one time
		t.Helper()
		noticesRead(b)
		b.Exec(`UPDATE mail.people SET confirmed_at = $1`, hooktest.At.Add(-time.Hour))
		b.Exec(`UPDATE mail.choices SET since = $1`, hooktest.At.Add(-time.Hour))
	}
	for _, p := range []string{"p1", "p2", "p3"} {
		b.Project(p, "https://hooks.example", nil)
	}
	for _, j := range []string{"j1", "j2", "j3", "j5"} {
		b.Submit("p1", j)
	}
	b.Submit("p2", "j4")
	stop := followNotices(b, true)
	set("p1", chatSet("s1", "failures", ""))
	set("p2", chatSet("s2", "all", ""))
	early()
	good := hooktest.Completed()
	good.PassCount, good.FailCount, good.SkipCount, good.Items = 5, 0, 0, nil
	b.Events.Add(domain.JobStream("j1"), hooktest.Claimed(), hooktest.Completed())
	b.Events.Add(domain.JobStream("j2"), hooktest.Claimed(), good)
	b.Events.Add(domain.JobStream("j4"), hooktest.Claimed(), good)
	for range 2 { // in one hour: told once
		b.Events.Add(domain.AccountStream("acc"), &account.SubmissionsRefused{Counts: []account.RefusedCount{
			{Reason: domain.CodeInsufficientCredits, Source: "deploy", ProjectID: "p2", Tests: 2}, {Reason: domain.CodeRateLimited, Source: "api", Tests: 1},
		}})
	}
	b.Change("p1", &project.WebhookDisabled{DeliveryID: "d", Reason: "answered 500", At: hooktest.At})
	noticesRead(b)
	for projectID, want := range map[string][]string{
		"p1": {
			"report true p1|Checkout|3 of 5 failed, 1 skipped: a critical one|/dashboard/jobs/j1",
			"webhook false p1|The webhook of p1 is disabled|Events are held. answered 500|/dashboard/projects/p1/webhook",
		},
		"p2": {
			"credits false |Tests are refused|The overview has their number and the reason|/dashboard",
			"report false p2|Checkout|5 of 5 passed|/dashboard/jobs/j4",
		},
		"p3": nil,
	} {
		if got := noticesOf(b, projectID); !slices.Equal(got, want) {
			t.Errorf("the chat of %s is told\n%s\nwant\n%s", projectID, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	set("p1", chatSet("s3", "all", "")) // another address, and choice: what waits stays
	b.Events.Add(domain.JobStream("j3"), hooktest.Claimed(), good)
	noticesRead(b)
	if got := noticesOf(b, "p1"); len(got) != 3 {
		t.Errorf("after the change it is told\n%s", strings.Join(got, "\n"))
	}
	set("p1", chatSet("", "all", "the chat answered 410"))
	set("p2", chatSet("", "", ""))
	b.Events.Add(domain.JobStream("j5"), hooktest.Claimed(), hooktest.Completed())
	noticesRead(b)
	if got := slices.Concat(noticesOf(b, "p1"), noticesOf(b, "p2")); len(got) != 0 {
		t.Errorf("chats that are no more are told %q", got)
	}
	told := "webhook false p1|The chat of p1 has ended|Its address takes nothing any more: the chat answered 410|/dashboard/projects/p1/chat"
	if got := noticesOf(b, "ann"); !slices.Contains(got, told) {
		t.Errorf("ann is told\n%s", strings.Join(got, "\n"))
	}
	stop()
	followNotices(b, false) // as without a mail server
	set("p3", chatSet("s4", "all", ""))
	early()
	before := noticesOf(b, "ann")
	b.Change("p3", &project.WebhookDisabled{DeliveryID: "d", Reason: "answered 500", At: hooktest.At})
	noticesRead(b)
	if got := noticesOf(b, "p3"); len(got) != 1 || !slices.Equal(noticesOf(b, "ann"), before) {
		t.Errorf("without a mail server the chat is told %q, and ann %q", got, noticesOf(b, "ann"))
	}
	b.Events.Add(domain.AccountStream("acc"), &account.ErasureFinished{})
	noticesRead(b)
	var left int
	if err := b.DB.Get(&left, `SELECT count(*) FROM mail.people WHERE account_id IS NOT NULL`); err != nil || left != 0 {
		t.Errorf("%d chats of an erased account, %v", left, err)
	}
}
