package webhooks_test

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/project"
	"humanqa/domain/subscription"
	"humanqa/internal/eventually"
)

// What concerns the whole account goes to the projects whose list names it, and
// to nobody else: not to those without a list, not to another account's.
func TestEventsOfTheAccountGoWhereTheyAreNamed(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	list := func(names ...string) *[]string { return &names }
	both := list(subscription.OfAccount()...)
	b.project("ops", e.URL+"/ops", both)
	b.project("low", e.URL+"/low", list(subscription.CreditsLow, "job.created"))
	b.project("shop", e.URL+"/shop", nil)
	b.log.RecordAs(domain.Metadata{Time: at, AccountID: "other"}, domain.ProjectStream("theirs"),
		&project.Created{AccountID: "other", Name: "theirs", At: at},
		&project.WebhookSet{URL: e.URL + "/theirs", Events: both, At: at})
	b.dispatch()
	stop := b.subscribe()
	spend := func(amount, after domain.Credits) {
		b.log.record(domain.CreditsStream("acc"), &credits.Debited{JobID: "j", Amount: amount, BalanceAfter: after})
	}
	b.log.record(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 30, BalanceAfter: 30})
	spend(5, 25)
	spend(10, 15)
	spend(5, 10) // low already
	b.subscribed()
	stop()
	stop = b.subscribe() // who hears is known after a restart, too
	b.on("shop", &project.SettingsChanged{Name: "Shop", At: at})
	b.log.RecordAs(domain.Metadata{Time: at}, domain.ProjectStream("shop"),
		&project.WebhookDisabled{DeliveryID: "d1", Reason: "answered 500 four times", At: at})
	b.subscribed()
	got := map[string]string{}
	for range 3 {
		r := e.next()
		got[r.path+" "+r.event()] = r.body
	}
	e.none()
	for _, want := range []struct{ at, file string }{
		{"/ops account.credits_low", "account.credits_low.json"},
		{"/low account.credits_low", "account.credits_low.json"},
		{"/ops account.webhook_disabled", "account.webhook_disabled.json"},
	} {
		if got[want.at] == "" {
			t.Errorf("nothing came to %s", want.at)
			continue
		}
		golden(t, want.file, pretty(t, got[want.at]))
	}

	// A list that names it no longer hears nothing more.
	b.on("ops", &project.WebhookSet{URL: e.URL + "/ops", Events: list("job.created"), At: at})
	b.on("low", &project.WebhookCleared{At: at})
	b.log.record(domain.CreditsStream("acc"), &credits.Granted{LotID: "m", Amount: 20, BalanceAfter: 30})
	spend(20, 10)
	b.subscribed()
	e.none()
	stop()
}

// A project whose endpoint hangs holds nobody else's news of the account up.
func TestEventsOfTheAccountDoNotWaitForAnotherProject(t *testing.T) {
	b := setup(t)
	b.cfg.Retries = nil
	e := b.endpoint(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/slow") {
			hang(w, r)
		}
	})
	named := []string{subscription.CreditsLow}
	b.project("slow", e.URL+"/slow", &named)
	b.project("ops", e.URL+"/ops", &named)
	b.dispatch()
	b.subscribe()
	b.log.record(domain.CreditsStream("acc"), &credits.Granted{LotID: "l", Amount: 30, BalanceAfter: 30})
	for range 2 {
		b.log.record(domain.CreditsStream("acc"), &credits.Debited{JobID: "j", Amount: 15, BalanceAfter: 15},
			&credits.Refunded{JobID: "j", Amount: 15, BalanceAfter: 30})
	}
	came := 0
	eventually.True(t, "both come to the one that answers", func() bool {
		for {
			select {
			case r := <-e.requests:
				if r.path == "/ops" {
					came++
				}
			default:
				return came == 2
			}
		}
	})
}
