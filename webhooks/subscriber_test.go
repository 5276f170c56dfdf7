package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/domain/project"
	"humanqa/eventstore/consumer"
	"humanqa/internal/must"
	"humanqa/webhooks"
)

func secretOf(owner string) *project.SecretSet {
	return &project.SecretSet{SecretID: "s", Sealed: sealed(owner, "a secret"), At: at}
}

func newDispatcher(b *bundle) *webhooks.Dispatcher {
	return webhooks.NewDispatcher(b.db, plainVault{}, webhooks.Report{}, b.cfg)
}

func (b *bundle) status() consumer.Status {
	b.Helper()
	return subscriberStatus(b, b.db)
}

func TestASubscriberGoesOnAtItsCheckpoint(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	stop := b.subscribe()
	b.subscribed()
	stop()
	b.log.record(domain.JobStream("j1"), claimed())
	b.subscribe()
	b.subscribed()
	b.settled("p1", map[string]int{"pending": 2})
	if b.log.Loads() != 1 {
		t.Errorf("the job was loaded %d times, want once: after a restart it is not known", b.log.Loads())
	}
}

// As after a crash that lost the checkpoint but not the rows: the same rows
// come out.
func TestReadingEventsTwiceMakesNoSecondDelivery(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.submit("p1", "j2")
	stop := b.subscribe()
	b.subscribed()
	b.dispatch()
	b.settled("p1", map[string]int{"delivered": 2})
	stop()
	_, err := b.db.Exec(`UPDATE projection_checkpoints SET commit_position = -1, prepare_position = -1 WHERE name = 'webhooks'`)
	must.NoError(t, err)
	b.subscribe()
	b.subscribed()
	b.settled("p1", map[string]int{"delivered": 2})
	e.next()
	e.next()
	e.none()
}

func TestOneSubscriberWorksAndAnotherTakesOver(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	stops := []func(){b.subscribe(), b.subscribe(), b.subscribe()}
	for i, stop := range stops {
		b.submit("p1", fmt.Sprint(i))
		b.subscribed()
		if i < len(stops)-1 {
			stop()
		}
	}
	b.settled("p1", map[string]int{"pending": 3})
}

// Invariant 11.
func TestASubscriberThatLostItsLeaseWritesNothing(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.subscribe()
	b.subscribed()
	before := b.status().Position
	_, err := b.db.Exec(`UPDATE projection_checkpoints SET owner = 'another', epoch = epoch + 1, lease_until = now() + interval '1 second' WHERE name = 'webhooks'`)
	must.NoError(t, err)
	b.submit("p1", "j1")
	b.eventually("the other one's lease ran out", func() bool {
		var state struct {
			Other bool  `db:"other"`
			At    int64 `db:"at"`
		}
		err := b.db.Get(&state, `SELECT coalesce(owner = 'another' AND lease_until > now(), false) AS other, commit_position AS at FROM projection_checkpoints WHERE name = 'webhooks'`)
		must.NoError(t, err)
		if state.Other && uint64(state.At) != before.Commit {
			t.Fatal("the checkpoint moved under somebody else's lease")
		}
		return !state.Other
	})
	b.subscribed()
	b.settled("p1", map[string]int{"pending": 1})
}

// Deliveries are in the order of their job's events, and jobs wait for no other.
func TestAnEventThatDoesNotDecodeHoldsItsJobUpUntilItIsRetried(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.log.Spoil(b.log.Head().Commit+1, true)
	b.submit("p1", "j2")
	b.log.record(domain.JobStream("j2"), claimed())
	b.submit("p1", "j3")
	b.subscribe()
	b.subscribed()
	s := b.status()
	if len(s.SetAside) != 1 || s.Failure != nil || s.SetAside[0].Category != consumer.CategoryDecode || s.SetAside[0].Position.Commit != 5 ||
		s.SetAside[0].Stream != "job-j2" || !strings.Contains(s.SetAside[0].Detail, "not JSON") {
		t.Fatalf("the status is %+v, failure %+v", s, s.Failure)
	}
	b.settled("p1", map[string]int{"pending": 2})

	b.log.Spoil(5, false)
	must.NoError(t, consumer.Retry(ctx, b.db, webhooks.SubscriberName))
	b.eventually("the job goes on", func() bool { return len(b.status().SetAside) == 0 })
	b.settled("p1", map[string]int{"pending": 4})
	if err := consumer.Retry(ctx, b.db, webhooks.SubscriberName); err == nil {
		t.Error("a live subscriber was resumed")
	}
}

// What a project says may be that nothing is to be sent any more.
func TestAnEventOfAProjectThatDoesNotDecodeStopsTheLine(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.log.Spoil(b.log.Head().Commit+1, true)
	b.on("p1", &project.WebhookSet{URL: "", At: at})
	b.submit("p1", "j2")
	b.subscribe()
	b.eventually("the line stands", func() bool { return b.status().State == consumer.Stopped })
	if s := b.status(); len(s.SetAside) > 0 || s.Failure == nil || s.Failure.Category != consumer.CategoryDecode || s.Failure.Position.Commit != 5 || s.Position.Commit != 4 {
		t.Fatalf("the status is %+v, failure %+v", s, s.Failure)
	}
	b.settled("p1", map[string]int{"pending": 1})
}

func TestAnEventWithoutItsJobIsSkippedOnAnOperatorsWord(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.submit("p1", "j1")
	b.log.record(domain.JobStream("headless"), claimed())
	b.submit("p1", "j2")
	b.subscribe()
	b.subscribed()
	s := b.status()
	if len(s.SetAside) != 1 || s.SetAside[0].Category != consumer.CategoryPayload || !strings.Contains(s.SetAside[0].Detail, "in job-headless: ") {
		t.Fatalf("set aside: %+v", s.SetAside)
	}
	b.settled("p1", map[string]int{"pending": 2})
	must.NoError(t, consumer.Skip(ctx, b.db, webhooks.SubscriberName, s.SetAside[0].Position, "operator", "it was a test"))
	b.eventually("it is skipped", func() bool { return len(b.status().SetAside) == 0 })
	skips, err := consumer.Skips(ctx, b.db, webhooks.SubscriberName)
	must.NoError(t, err)
	if len(skips) != 1 || skips[0].Who != "operator" || skips[0].Why != "it was a test" || !strings.Contains(skips[0].Detail, "job-headless") {
		t.Errorf("the record of skips is %+v", skips)
	}
}

func TestUnknownEventsAndOtherStreamsPass(t *testing.T) {
	b := setup(t)
	e := b.endpoint(status(http.StatusOK))
	b.project("p1", e.URL, nil)
	b.log.record("account-acc", &job.Released{})
	b.log.record(domain.JobStream("voided"), &job.Voided{AccountID: "acc", At: at})
	b.on("p1", &project.SettingsChanged{Name: "new", At: at})
	b.submit("p1", "j1")
	b.subscribe()
	b.subscribed()
	b.settled("p1", map[string]int{"pending": 1})
}
