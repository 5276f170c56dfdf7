package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	app "humanqa/cmd/humanqa/service"
)

const (
	// plenty is more than a run can spend.
	plenty = 1_000_000_000
	// hands is how many of the operator's commands run at a time.
	hands = 4
)

// service is `humanqa serve` on a fresh data directory, everything embedded,
// with an account for each client and one for all of them.
type service struct {
	*process
	bench   *bench
	program string
	data    string // its directory
	environ []string
	admin   string
	keys    []string
	hot     string // key of the account that all share
	jobs    int    // submitted so far
}

// openService builds and starts the service once; it runs until the run's end.
func (b *bench) openService(ctx context.Context) (*service, error) {
	if b.service != nil {
		return b.service, nil
	}
	program, err := b.build(ctx)
	if err != nil {
		return nil, err
	}
	s := &service{bench: b, program: program}
	if s.data, err = b.folder("service"); err != nil {
		return nil, err
	}
	addr, err := freeAddr(ctx)
	if err != nil {
		return nil, err
	}
	if s.admin, err = freeAddr(ctx); err != nil {
		return nil, err
	}
	s.environ = []string{
		"HUMANQA_DATA_DIR=" + s.data, "HUMANQA_ADDR=" + addr, "HUMANQA_ADMIN_ADDR=" + s.admin, "HUMANQA_LOG_FORMAT=json",
		// Requests are counted, but the limit is never reached.
		"HUMANQA_RATE_LIMIT=1000000000",
	}
	if err := s.run(ctx, addr); err != nil {
		return nil, err
	}
	b.stops.add(func(ctx context.Context) error { return s.stop(ctx) }) // the process that runs then
	if err := s.openAccounts(ctx); err != nil {
		return nil, err
	}
	b.service = s
	return s, nil
}

// build makes the program, once.
func (b *bench) build(ctx context.Context) (program string, err error) {
	program = filepath.Join(b.work, "humanqa")
	_, err = call(ctx, nil, "go", "-C", "..", "build", "-o", program, "./cmd/humanqa") // by its own go.mod
	return program, err
}

// run starts a process. If that fails, s keeps the previous process, which has ended.
func (s *service) run(ctx context.Context, addr string) error {
	p, err := s.bench.start(ctx, "service", addr, s.environ, s.program, "serve")
	if err == nil {
		s.process = p
	}
	return err
}

// whileStopped stops the service, and opens what it stands on for do.
func (s *service) whileStopped(ctx context.Context, do func(*app.Core) error) (err error) {
	if err := s.stop(ctx); err != nil {
		return err
	}
	cfg, err := app.ParseConfig(append(withoutOurs(os.Environ()), s.environ...))
	if err != nil {
		return err
	}
	core, err := app.Open(ctx, cfg, s.bench.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, core.Close(context.WithoutCancel(ctx))) }()
	return do(core)
}

// restart stops the service and starts it again; took is until it is ready.
func (s *service) restart(ctx context.Context) (took time.Duration, err error) {
	if err := s.stop(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	err = s.run(ctx, s.url[len("http://"):])
	return time.Since(began), err
}

// openAccounts uses the operator's commands, beside the running service.
func (s *service) openAccounts(ctx context.Context) error {
	keys := make([]string, endpointClients+1)
	errs := make([]error, len(keys))
	turn := make(chan struct{}, hands)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			keys[i], errs[i] = s.openAccount(ctx, "bench "+strconv.Itoa(i))
		})
	}
	wg.Wait()
	s.keys, s.hot = keys[:endpointClients], keys[endpointClients]
	return errors.Join(errs...)
}

func (s *service) openAccount(ctx context.Context, name string, flags ...string) (key string, err error) {
	args := append([]string{"account", "create", "--json", "--name", name, "--credits", strconv.Itoa(plenty)}, flags...)
	out, err := call(ctx, s.environ, s.program, args...)
	if err != nil {
		return "", err
	}
	var opened struct{ APIKey string }
	if err := json.Unmarshal(out, &opened); err != nil {
		return "", fmt.Errorf("read the new account: %w", err)
	}
	return opened.APIKey, nil
}

// jobsOf asks the service how many jobs an account has.
func (s *service) jobsOf(ctx context.Context, key string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/jobs?limit=1", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	var page struct{ Total int }
	if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
		return 0, fmt.Errorf("read the list of jobs: %w", err)
	}
	return page.Total, nil
}

// profile takes a CPU profile of the service while a round runs.
func (s *service) profile(ctx context.Context, name string, d time.Duration) error {
	seconds := max(int(d.Seconds()), 1)
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.admin, seconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("take a profile: %w", err)
	}
	defer answer.Body.Close()
	f, err := os.Create(filepath.Join(s.bench.profiles, name+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(f, answer.Body)
	return errors.Join(err, f.Close())
}
