package webhooks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/hooktest"
)

// What concerns the whole account goes to the projects whose list names it, and
// to nobody else: not to those without a list, not to another account's.
func TestEventsOfTheAccountGoWhereTheyAreNamed(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	list := func(names ...string) *[]string { return &names }
	both := list(subscription.OfAccount()...)
	b.Project("ops", e.URL+"/ops", both)
	b.Project("low", e.URL+"/low", list(subscription.CreditsLow, "job.created"))
	b.Project("shop", e.URL+"/shop", nil)
	b.Events.RecordAs(domain.Metadata{Time: hooktest.At, AccountID: "other"}, domain.ProjectStream("theirs"),
		&project.Created{AccountID: "other", Name: "theirs", At: hooktest.At},
		&project.WebhookSet{URL: e.URL + "/theirs", Events: both, At: hooktest.At})
	b.Dispatch()
	stop := b.Subscribe()
	spend := func(amount, after domain.Credits) {
		b.Events.Add(domain.CreditsStream("acc"), &credits.Debited{JobID: "j", Amount: amount, BalanceAfter: after})
	}
	b.Events.Add(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 30, BalanceAfter: 30})
	spend(5, 25)
	spend(10, 15)
	spend(5, 10) // low already
	b.Events.Add(domain.AccountStream("acc"), &account.SubmissionsRefused{
		From: hooktest.At, To: hooktest.At.Add(time.Second),
		Counts: []account.RefusedCount{
			{Reason: domain.CodeInsufficientCredits, Source: "deploy", ProjectID: "shop", Tests: 2},
			{Reason: domain.CodeRateLimited, Source: "api", KeyID: "acc.k1", Tests: 1},
		},
		Samples: []account.RefusedTest{{Source: "deploy", ProjectID: "shop", URL: "https://shop.example.com/", Commit: "abcdef0", Branch: "main", Whole: true}},
	})
	b.Subscribed()
	stop()
	stop = b.Subscribe() // the listeners are known after a restart, too
	b.Change("shop", &project.SettingsChanged{Name: "Shop", At: hooktest.At})
	b.Events.RecordAs(domain.Metadata{Time: hooktest.At}, domain.ProjectStream("shop"),
		&project.WebhookDisabled{DeliveryID: "d1", Reason: "answered 500 four times", At: hooktest.At})
	b.Subscribed()
	got := map[string]string{}
	for range 4 {
		r := e.Next()
		got[r.Path+" "+r.Event()] = r.Body
	}
	e.None()
	for _, want := range []struct{ at, file string }{
		{"/ops account.credits_low", "account.credits_low.json"},
		{"/low account.credits_low", "account.credits_low.json"},
		{"/ops account.submissions_refused", "account.submissions_refused.json"},
		{"/ops account.webhook_disabled", "account.webhook_disabled.json"},
	} {
		if got[want.at] == "" {
			t.Errorf("nothing came to %s", want.at)
			continue
		}
		golden(t, want.file, pretty(t, got[want.at]))
	}

	// A list that names it no longer hears nothing more.
	b.Change("ops", &project.WebhookSet{URL: e.URL + "/ops", Events: list("job.created"), At: hooktest.At})
	b.Change("low", &project.WebhookCleared{At: hooktest.At})
	b.Events.Add(domain.CreditsStream("acc"), &credits.Granted{LotID: "m", Amount: 20, BalanceAfter: 30})
	spend(20, 10)
	b.Subscribed()
	e.None()
	stop()
}

// A project whose endpoint hangs holds nobody else's news of the account up.
func TestEventsOfTheAccountDoNotWaitForAnotherProject(t *testing.T) {
	b := setup(t)
	b.Config.Retries = nil
	e := b.Endpoint(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			hooktest.Hang(w, r)
		}
	})
	named := []string{subscription.CreditsLow}
	b.Project("slow", e.URL+"/slow", &named)
	b.Project("ops", e.URL+"/ops", &named)
	b.Dispatch()
	b.Subscribe()
	b.Events.Add(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 30, BalanceAfter: 30})
	for range 2 {
		b.Events.Add(domain.CreditsStream("acc"), &credits.Debited{JobID: "j", Amount: 15, BalanceAfter: 15},
			&credits.Refunded{JobID: "j", Amount: 15, BalanceAfter: 30})
	}
	came := 0
	eventually.True(t, "both come to the one that answers", func() bool {
		for {
			select {
			case r := <-e.Requests:
				if r.Path == "/ops" {
					came++
				}
			default:
				return came == 2
			}
		}
	})
}
