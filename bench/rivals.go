package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"humanqa/internal/guard"
	"humanqa/internal/pgdev"
	"humanqa/internal/pgpool"
	"humanqa/internal/receiver"
	"humanqa/migrations"
	"humanqa/webhooks/send"
)

// drained is how many deliveries wait when a drain begins.
const drained = 5000

// rivals are two senders of the same events to the same endpoint: the dispatcher, in this
// process, and River (bench/rival), in one of its own. Each has a Postgres of its own
// with the same settings; while one is measured the other is idle.
type rivals struct {
	ours, rivers *pgdev.Server
	endpoint     *receiver.Receiver
	program      string
	got          atomic.Int64  // since the last drain began
	all          chan struct{} // the drain's last has come
}

func (b *bench) openRivals(ctx context.Context, stops *stops) (r *rivals, err error) {
	r = &rivals{program: filepath.Join(b.work, "rival"), all: make(chan struct{}, 1)}
	if _, err := call(ctx, nil, "go", "build", "-o", r.program, "./rival"); err != nil {
		return nil, err
	}
	for name, server := range map[string]**pgdev.Server{"pg of ours": &r.ours, "pg of river": &r.rivers} {
		if *server, err = b.startPostgres(ctx, name, stops); err != nil {
			return nil, err
		}
	}
	dir, err := b.folder("rivals' endpoint")
	if err != nil {
		return nil, err
	}
	r.endpoint, err = receiver.New(ctx, receiver.Config{Dir: dir, Received: func(context.Context, receiver.Delivery) int {
		if r.got.Add(1) == drained {
			r.all <- struct{}{}
		}
		return http.StatusOK
	}})
	if err != nil {
		return nil, err
	}
	stops.add(background(ctx, r.endpoint.Run))
	return r, nil
}

// begin forgets the requests that have come.
func (r *rivals) begin() {
	r.got.Store(0)
	select {
	case <-r.all:
	default:
	}
}

const fillQueue = `
WITH hook AS (
	INSERT INTO webhooks.endpoints (project_id, account_id, url, secret, due_at)
	SELECT 'p' || n, 'a', $1 || n, 'sealed', now()
	FROM generate_series(0, $2::integer - 1) n
)
INSERT INTO webhooks.deliveries (id, project_id, event_id, event, ordering_key, revision, body, state)
SELECT gen_random_uuid(), 'p' || n % $2, gen_random_uuid(), 'job.created', 'job-' || n, 0, convert_to($3, 'UTF8'), 'pending'
FROM generate_series(1, $4::integer) n`

// openVault opens everything.
type openVault struct{}

func (openVault) Unseal(context.Context, string, string, string) ([]byte, error) {
	return []byte("secret"), nil
}

// drain sends the deliveries that wait in our queue, and gives their rate.
func (r *rivals) drain(ctx context.Context, b *bench, over int) (perSecond float64, err error) {
	db, err := pgpool.Open(ctx, r.ours.DSN(pgdev.Database))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := migrations.Up(ctx, db.DB); err != nil {
		return 0, err
	}
	if _, err := db.ExecContext(ctx, "TRUNCATE webhooks.endpoints, webhooks.deliveries, webhooks.attempts"); err != nil {
		return 0, err
	}
	body := `{"event":"job.created","data":{"filler":"` + strings.Repeat("x", 500) + `"}}`
	if _, err := db.ExecContext(ctx, fillQueue, r.endpoint.URL(), over, body, drained); err != nil {
		return 0, fmt.Errorf("fill the queue: %w", err)
	}
	r.begin()
	began := time.Now()
	stop := background(ctx, send.NewDispatcher(db, openVault{}, send.Report{}, send.Config{
		DSN: r.ours.DSN(pgdev.Database), CAFile: r.endpoint.CAFile(), Allow: guard.Allow{netip.MustParsePrefix("127.0.0.0/8")}, Log: b.log,
	}).Run)
	select {
	case <-r.all:
		perSecond = drained / time.Since(began).Seconds()
	case <-ctx.Done():
		err = ctx.Err()
	}
	return perSecond, errors.Join(err, stop(ctx))
}

// rivalRun is the result that a run of the rival prints.
type rivalRun struct {
	Seconds   float64
	Processor float64   // seconds, of its own process
	Millis    []float64 // from when each was due to its answer, sorted
}

func (r *rivals) river(ctx context.Context, over, jobs, rate int) (got rivalRun, err error) {
	r.begin()
	out, err := call(ctx, nil, r.program, "-database", r.rivers.TCPDSN(pgdev.Database), "-ca", r.endpoint.CAFile(), "-endpoint",
		r.endpoint.URL(),
		"-over", strconv.Itoa(over), "-jobs", strconv.Itoa(jobs), "-rate", strconv.Itoa(rate))
	if err != nil {
		return got, err
	}
	return got, json.Unmarshal(out, &got)
}

// drains compares how fast waiting deliveries are sent.
func (r *rivals) drains(ctx context.Context, b *bench) (figures []figure, goals []goal, err error) {
	for _, over := range []int{100, 1} {
		var ours, rivers []float64
		for range b.rounds {
			rate, err := r.drain(ctx, b, over)
			if err != nil {
				return nil, nil, err
			}
			run, err := r.river(ctx, over, drained, 0)
			if err != nil {
				return nil, nil, err
			}
			ours, rivers = append(ours, rate), append(rivers, drained/run.Seconds)
		}
		slices.Sort(ours)
		slices.Sort(rivers)
		our, their := ours[len(ours)/2], rivers[len(rivers)/2]
		figures = append(figures,
			figure{fmt.Sprintf("drain over %d, ours", over), our, "deliveries/s"},
			figure{fmt.Sprintf("drain over %d, River", over), their, "deliveries/s"})
		goals = append(goals, atLeast(fmt.Sprintf("drain over %d, ours to River", over), our/their, 0.75))
	}
	return figures, goals, nil
}

// atRate has River send at a rate, and measures the processor time of River and its
// Postgres.
func (r *rivals) atRate(ctx context.Context, rate int, took time.Duration) (measurement, figure, error) {
	pid, err := r.postmaster()
	if err != nil {
		return measurement{}, figure{}, err
	}
	before, err := cpuTime(pid)
	if err != nil {
		return measurement{}, figure{}, err
	}
	jobs := rate * int(took.Seconds())
	run, err := r.river(ctx, 1, jobs, rate)
	if err != nil {
		return measurement{}, figure{}, err
	}
	after, err := cpuTime(pid)
	if err != nil {
		return measurement{}, figure{}, err
	}
	got := sample{window: took}
	for _, ms := range run.Millis {
		got.latencies = append(got.latencies, time.Duration(ms*float64(time.Millisecond)))
	}
	name := fmt.Sprintf("%d a second, River", rate)
	each := (run.Processor + (after - before).Seconds()) * 1000 / float64(jobs)
	return summarise("", name, []sample{got}), figure{fmt.Sprintf("processor time for 1,000 jobs at %d a second, River", rate), each, "s"},
		nil
}

// postmaster is the process id of River's Postgres.
func (r *rivals) postmaster() (int, error) {
	lines, err := os.ReadFile(filepath.Join(r.rivers.Home(), "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(lines), "\n")
	return strconv.Atoi(strings.TrimSpace(first))
}
