// Command rival sends webhooks with River, the queue that the service's own is
// measured against (part i of make bench, which builds and runs it).
//
// The worker does the least that a webhook needs: it signs the body and posts it,
// over connections that are kept, and fails on anything but a 2xx. So it has no
// guard, no order, no log of attempts and no cap.
//
//	rival -database URL -ca FILE -endpoint URL -over N -jobs N        sends what waits
//	rival -database URL -ca FILE -endpoint URL -over N -jobs N -rate N  as it comes
//
// It prints one line of JSON: the seconds of a drain, and the processor time in seconds.
// For jobs at a rate it adds the milliseconds from when each was due to its answer.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"golang.org/x/sys/unix"
)

const (
	places  = 256 // as many as the service's dispatcher has
	timeout = 10 * time.Second
)

// payload is about as long as a job's event.
var payload = `{"event":"job.created","data":{"filler":"` + string(bytes.Repeat([]byte("x"), 500)) + `"}}`

type hook struct {
	URL  string `json:"url"`
	Body string `json:"body"`
	Due  int64  `json:"due"` // Unix nanoseconds
}

func (hook) Kind() string { return "hook" }

type sender struct {
	river.WorkerDefaults[hook]
	client *http.Client

	all  int
	done atomic.Int64
	end  chan struct{}

	mu   sync.Mutex
	took []float64 // milliseconds
}

func (s *sender) Work(ctx context.Context, job *river.Job[hook]) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	mac := hmac.New(sha256.New, []byte("secret"))
	mac.Write([]byte(job.Args.Body))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Args.URL, bytes.NewReader([]byte(job.Args.Body)))
	if err != nil {
		return err
	}
	req.Header.Set("X-Service-Signature", hex.EncodeToString(mac.Sum(nil)))
	req.Header.Set("X-Service-Delivery", strconv.FormatInt(job.ID, 10))
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("answered %d", resp.StatusCode)
	}
	s.mu.Lock()
	s.took = append(s.took, float64(time.Now().UnixNano()-job.Args.Due)/1e6)
	s.mu.Unlock()
	if s.done.Add(1) == int64(s.all) {
		close(s.end)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "rival:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	database := flag.String("database", "", "a Postgres URL")
	ca := flag.String("ca", "", "the endpoint's certificate, PEM")
	endpoint := flag.String("endpoint", "", "where to send to")
	over := flag.Int("over", 1, "how many paths of it")
	jobs := flag.Int("jobs", 5000, "how many to send")
	rate := flag.Int("rate", 0, "so many a second as they come; 0: all wait already")
	flag.Parse()

	pool, err := pgxpool.New(ctx, *database)
	if err != nil {
		return err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	pem, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	s := &sender{all: *jobs, end: make(chan struct{}), client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, ForceAttemptHTTP2: true,
		MaxIdleConns: places, MaxIdleConnsPerHost: places,
	}}}
	workers := river.NewWorkers()
	river.AddWorker(workers, s)
	client, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: places}},
		Workers: workers, FetchCooldown: 10 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	one := func(i int, due time.Time) hook {
		return hook{URL: *endpoint + strconv.Itoa(i%*over), Body: payload, Due: due.UnixNano()}
	}
	if *rate == 0 {
		if err := fill(ctx, client, *jobs, one); err != nil {
			return err
		}
	}
	before, began := worked(), time.Now()
	if err := client.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Stop(ctx)) }()
	if *rate > 0 {
		if err := insertAtRate(ctx, client, *jobs, *rate, one); err != nil {
			return err
		}
	}
	<-s.end
	took := time.Since(began)
	slices.Sort(s.took)
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"seconds": took.Seconds(), "processor": (worked() - before).Seconds(), "millis": s.took,
	})
}

func fill(ctx context.Context, client *river.Client[pgx.Tx], jobs int, one func(int, time.Time) hook) error {
	all := make([]river.InsertManyParams, jobs)
	for i := range all {
		all[i].Args = one(i, time.Now())
	}
	for batch := range slices.Chunk(all, 1000) {
		if _, err := client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

func insertAtRate(ctx context.Context, client *river.Client[pgx.Tx], jobs, rate int, one func(int, time.Time) hook) error {
	began := time.Now()
	errs := make(chan error, jobs)
	for i := range jobs {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(rate))
		time.Sleep(time.Until(due))
		go func() {
			_, err := client.Insert(ctx, one(i, due), nil)
			errs <- err
		}()
	}
	for range jobs {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

// worked is how long processors have worked for this process.
func worked() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
