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
	"humanqa/eventstore/generation"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/must"
	"humanqa/webhooks"
)

func (b *bundle) status() consumer.Status {
	b.Helper()
	return hooktest.SubscriberStatus(b, b.DB)
}

func TestASubscriberGoesOnAtItsCheckpoint(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	stop := b.Subscribe()
	b.Subscribed()
	stop()
	b.Events.Add(domain.JobStream("j1"), hooktest.Claimed())
	b.Subscribe()
	b.Subscribed()
	b.Settled("p1", map[string]int{"pending": 2})
	if b.Events.Loads() != 1 {
		t.Errorf("the job was loaded %d times, want once: after a restart it is not known", b.Events.Loads())
	}
}

// As after a crash that lost the checkpoint but not the rows: the same rows
// come out.
func TestReadingEventsTwiceMakesNoSecondDelivery(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Submit("p1", "j2")
	stop := b.Subscribe()
	b.Subscribed()
	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 2})
	stop()
	_, err := b.DB.Exec(`UPDATE projection_checkpoints SET commit_position = -1, prepare_position = -1 WHERE name = 'webhooks'`)
	must.NoError(t, err)
	b.Subscribe()
	b.Subscribed()
	b.Settled("p1", map[string]int{"delivered": 2})
	e.Next()
	e.Next()
	e.None()
}

func TestOneSubscriberWorksAndAnotherTakesOver(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	stops := []func(){b.Subscribe(), b.Subscribe(), b.Subscribe()}
	for i, stop := range stops {
		b.Submit("p1", fmt.Sprint(i))
		b.Subscribed()
		if i < len(stops)-1 {
			stop()
		}
	}
	b.Settled("p1", map[string]int{"pending": 3})
}

// Invariant 11.
func TestASubscriberThatLostItsLeaseWritesNothing(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Subscribe()
	b.Subscribed()
	before := b.status().Position
	_, err := b.DB.Exec(`UPDATE projection_checkpoints SET owner = 'another', epoch = epoch + 1, lease_until = now() + interval '1 second' WHERE name = 'webhooks'`)
	must.NoError(t, err)
	b.Submit("p1", "j1")
	b.Eventually("the other one's lease ran out", func() bool {
		var state struct {
			Other bool  `db:"other"`
			At    int64 `db:"at"`
		}
		err := b.DB.Get(&state, `SELECT coalesce(owner = 'another' AND lease_until > now(), false) AS other, commit_position AS at FROM projection_checkpoints WHERE name = 'webhooks'`)
		must.NoError(t, err)
		if state.Other && uint64(state.At) != before.Commit {
			t.Fatal("the checkpoint moved under somebody else's lease")
		}
		return !state.Other
	})
	b.Subscribed()
	b.Settled("p1", map[string]int{"pending": 1})
}

// Deliveries are in the order of their job's events, and jobs wait for no other.
func TestAnEventThatDoesNotDecodeHoldsItsJobUpUntilItIsRetried(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Events.Spoil(b.Events.Head().Commit+1, true)
	b.Submit("p1", "j2")
	b.Events.Add(domain.JobStream("j2"), hooktest.Claimed())
	b.Submit("p1", "j3")
	b.Subscribe()
	b.Subscribed()
	s := b.status()
	if len(s.SetAside) != 1 || s.Failure != nil || s.SetAside[0].Category != generation.CategoryDecode || s.SetAside[0].Position.Commit != 5 ||
		s.SetAside[0].Stream != "job-j2" || !strings.Contains(s.SetAside[0].Detail, "not JSON") {
		t.Fatalf("the status is %+v, failure %+v", s, s.Failure)
	}
	b.Settled("p1", map[string]int{"pending": 2})

	b.Events.Spoil(5, false)
	must.NoError(t, generation.Retry(ctx, b.DB, webhooks.SubscriberName))
	b.Eventually("the job goes on", func() bool { return len(b.status().SetAside) == 0 })
	b.Settled("p1", map[string]int{"pending": 4})
	if err := generation.Retry(ctx, b.DB, webhooks.SubscriberName); err == nil {
		t.Error("a live subscriber was resumed")
	}
}

// What a project says may be that nothing is to be sent any more.
func TestAnEventOfAProjectThatDoesNotDecodeStopsTheLine(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Events.Spoil(b.Events.Head().Commit+1, true)
	b.Change("p1", &project.WebhookSet{URL: "", At: hooktest.At})
	b.Submit("p1", "j2")
	b.Subscribe()
	b.Eventually("the line stands", func() bool { return b.status().State == generation.Stopped })
	if s := b.status(); len(s.SetAside) > 0 || s.Failure == nil || s.Failure.Category != generation.CategoryDecode || s.Failure.Position.Commit != 5 || s.Position.Commit != 4 {
		t.Fatalf("the status is %+v, failure %+v", s, s.Failure)
	}
	b.Settled("p1", map[string]int{"pending": 1})
}

func TestAnEventWithoutItsJobIsSkippedOnAnOperatorsWord(t *testing.T) {
	ctx := context.Background()
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Submit("p1", "j1")
	b.Events.Add(domain.JobStream("headless"), hooktest.Claimed())
	b.Submit("p1", "j2")
	b.Subscribe()
	b.Subscribed()
	s := b.status()
	if len(s.SetAside) != 1 || s.SetAside[0].Category != generation.CategoryPayload || !strings.Contains(s.SetAside[0].Detail, "in job-headless: ") {
		t.Fatalf("set aside: %+v", s.SetAside)
	}
	b.Settled("p1", map[string]int{"pending": 2})
	must.NoError(t, generation.Skip(ctx, b.DB, webhooks.SubscriberName, s.SetAside[0].Position, "operator", "it was a test"))
	b.Eventually("it is skipped", func() bool { return len(b.status().SetAside) == 0 })
	skips, err := generation.Skips(ctx, b.DB, webhooks.SubscriberName)
	must.NoError(t, err)
	if len(skips) != 1 || skips[0].Who != "operator" || skips[0].Why != "it was a test" || !strings.Contains(skips[0].Detail, "job-headless") {
		t.Errorf("the record of skips is %+v", skips)
	}
}

func TestUnknownEventsAndOtherStreamsPass(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	b.Events.Add("account-acc", &job.Released{})
	b.Events.Add(domain.JobStream("voided"), &job.Voided{AccountID: "acc", At: hooktest.At})
	b.Change("p1", &project.SettingsChanged{Name: "new", At: hooktest.At})
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Subscribed()
	b.Settled("p1", map[string]int{"pending": 1})
}
