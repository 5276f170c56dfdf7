package projections_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/eventstore"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/projections/overall"
)

// unreadable is a log of which one event cannot be read.
type unreadable struct {
	consumer.Source
	at domain.Position
}

func (u unreadable) Next(ctx context.Context, after eventstore.Checkpoint, _ int, types map[string]bool) (eventstore.Page, error) {
	page, err := u.Source.Next(ctx, after, 1, types)
	if err == nil && page.Next == u.at {
		err = &eventstore.DecodeError{Recorded: domain.Recorded{Position: u.at}, Err: errors.New("not JSON")}
	}
	return page, err
}

func TestTheMetricsOfTheBusiness(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.Run(w.Sup)
	now := modeltest.Noon.Add(10 * time.Minute)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	business := overall.NewBusiness(w.DB, unreadable{w.Log, domain.Position{Commit: 5, Prepare: 5}}, func() time.Time { return now }, quiet)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(business)
	scrape := func() string {
		t.Helper()
		answer := httptest.NewRecorder()
		promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(w.Ctx(), "GET", "/metrics", nil))
		return answer.Body.String()
	}
	values := func(text string) (values []string) {
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, "#") {
				values = append(values, strings.TrimSpace(line))
			}
		}
		return values
	}
	empty := []string{
		"humanqa_checkers_present 0", "humanqa_claims_total 0", "humanqa_credits_granted_total 0", "humanqa_credits_refunded_total 0",
		"humanqa_credits_used_total 0", "humanqa_evidence_bytes 0", "humanqa_live_claims 0", `humanqa_queue_jobs{priority="normal"} 0`,
		`humanqa_queue_jobs{priority="urgent"} 0`, `humanqa_queue_oldest_seconds{priority="normal"} 0`,
		`humanqa_queue_oldest_seconds{priority="urgent"} 0`, `humanqa_queue_sla_used_ratio{priority="normal"} 0`,
		`humanqa_queue_sla_used_ratio{priority="urgent"} 0`, "humanqa_sla_misses_total 0",
	}
	if got := values(scrape()); !slices.Equal(got, empty) {
		t.Errorf("an empty service tells\n%s", strings.Join(got, "\n"))
	}

	// Ann uses her key, Bob the pages; Eve was there a while ago.
	for _, name := range []string{"ann", "bob", "eve"} {
		w.Log.Record(domain.CheckerStream(name), &checker.Created{Name: name, Hash: name})
	}
	w.Log.Record(domain.PersonStream("p"), &person.Invited{Grant: person.Grant{Role: person.Checker, CheckerID: "bob"}})
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	w.Exec(`INSERT INTO http_rate (caller, slots, last, at, admitted) VALUES ('checker:ann', '{}', 1, $1, true), ('checker:eve', '{}', 1, $2, true)`,
		at(30*time.Second).UnixMicro(), at(2*time.Minute).UnixMicro())
	w.Exec(`INSERT INTO signin.sessions (hash, id, person_id, account_id, address, agent, created_at, seen_at, proved_at, expires_at)
		VALUES ('h', $1, 'p', '', '', '', $2, $2, $2, $3)`, uuid.New(), at(4*time.Minute), now.Add(time.Hour))
	w.Exec(`INSERT INTO http_evidence (id, account_id, job_id, checker_id, digest, content_type, size, begun_at, stored_at)
		VALUES ($1, 'acc', 'j', 'ann', 'a', 'image/png', 1000, $3, $3), ($2, 'acc', 'j', 'ann', 'b', 'image/png', 500, $3, NULL)`, uuid.New(), uuid.New(), at(0))
	w.Exec(`INSERT INTO http_recordings (id, account_id, job_id, checker_id, claim_token, content_type, size, parts, started_at, due_at)
		VALUES ($1, 'acc', 'j', 'ann', 1, 'video/webm', 20000, 1, $2, $2)`, uuid.New(), at(0))

	before := w.Log.Head()
	submitted := func(id string, minute int, urgent bool, events ...domain.Event) {
		w.Log.Record(domain.JobStream(id), modeltest.Created("acc", func(e *job.Created) { e.CreatedAt, e.Urgent = *modeltest.At(minute), urgent }))
		w.Log.Record(domain.JobStream(id), events...)
	}
	w.Log.Record(domain.CreditsStream("acc"), &credits.Granted{LotID: "unreadable", Amount: 1})
	w.Log.Record(domain.CreditsStream("acc"), &credits.Granted{LotID: "lot", Amount: 100},
		&credits.Debited{JobID: "a", Amount: 5}, &credits.Debited{JobID: "b", Amount: 10}, &credits.Refunded{JobID: "b", Amount: 10})
	submitted("a", 1, false)
	submitted("b", 4, false)
	submitted("c", 8, true)
	submitted("d", 0, false, modeltest.Claimed("ann"))
	submitted("e", 0, false, modeltest.Claimed("bob"), modeltest.Completed("pass"))
	submitted("f", 0, false, modeltest.Claimed("eve"), &job.SLAMissed{RequeueCount: 1, Requeued: true, DueAt: *modeltest.At(90), At: *modeltest.At(9)},
		&job.Cancelled{Reason: "client", At: *modeltest.At(9)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- business.Run(ctx, before) }()
	t.Cleanup(func() {
		stop()
		must.NoError(t, <-done)
	})
	full := []string{
		"humanqa_checkers_present 2", "humanqa_claims_total 3", "humanqa_credits_granted_total 100", "humanqa_credits_refunded_total 10",
		"humanqa_credits_used_total 15", "humanqa_evidence_bytes 21000", "humanqa_live_claims 1", `humanqa_queue_jobs{priority="normal"} 2`,
		`humanqa_queue_jobs{priority="urgent"} 1`, `humanqa_queue_oldest_seconds{priority="normal"} 540`,
		`humanqa_queue_oldest_seconds{priority="urgent"} 120`, `humanqa_queue_sla_used_ratio{priority="normal"} 0.15`,
		`humanqa_queue_sla_used_ratio{priority="urgent"} 0.03333333333333333`, "humanqa_sla_misses_total 1",
	}
	w.Eventually("the log is counted up to its end", func() bool { return slices.Contains(values(scrape()), "humanqa_sla_misses_total 1") })
	w.Reach(w.Sup)
	w.Eventually("the evidence is summed up", func() bool { return !slices.Contains(values(scrape()), "humanqa_evidence_bytes 0") })
	text := scrape()
	if got := values(text); !slices.Equal(got, full) {
		t.Errorf("it tells\n%s", strings.Join(got, "\n"))
	}
	problems, err := promlint.New(bytes.NewBufferString(text)).Lint()
	must.NoError(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
