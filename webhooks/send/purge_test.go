package send_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"humanqa/internal/testing/hooktest"
	"humanqa/webhooks"
)

func TestDeliveriesThatAreDoneWithGoAfterThirtyDays(t *testing.T) {
	b := setup(t)
	e := b.Endpoint(hooktest.Status(http.StatusOK))
	b.Project("p1", e.URL, nil)
	for i := range 6 {
		b.Submit("p1", fmt.Sprint(i))
	}
	b.Subscribe()
	b.Subscribed()
	stop := b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 6})
	stop()
	for i, change := range []string{
		`settled_at = now() - interval '29 days'`,
		`settled_at = now() - interval '31 days'`,
		`settled_at = now() - interval '31 days', state = 'dropped'`,
		`settled_at = now() - interval '31 days', state = 'failed'`,
		`settled_at = NULL, created_at = now() - interval '31 days', state = 'held'`,
	} {
		b.Exec(`UPDATE webhooks.deliveries SET `+change+` WHERE ordering_key = $1`, fmt.Sprintf("job-%d", i))
	}
	// More than one batch, as after a long time without a purge.
	b.Exec(`
INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state, settled_at)
SELECT gen_random_uuid(), 'p1', gen_random_uuid(), 'job.created', 'old', n, '', 'delivered', now() - interval '40 days'
FROM generate_series(1, 1200) AS n`)

	b.Dispatch()
	b.Settled("p1", map[string]int{"delivered": 2, "failed": 1, "held": 1})
	var orphans int
	err := b.DB.Get(&orphans, `SELECT count(*) FROM webhooks.attempts a WHERE NOT EXISTS (SELECT FROM webhooks.deliveries WHERE id = a.delivery_id)`)
	if err != nil || orphans != 0 {
		t.Errorf("%d attempts are left behind, error %v", orphans, err)
	}
	kept, _, err := b.DeliveryLog().Deliveries(context.Background(), "acc", "p1", webhooks.DeliveryFilter{State: webhooks.StateDelivered})
	if err != nil || len(kept) != 2 || kept[0].Stream != "job-5" || kept[1].Stream != "job-0" {
		t.Errorf("kept are %+v, error %v", kept, err)
	}
}
