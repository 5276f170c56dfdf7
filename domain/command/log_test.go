package command_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/audit"
	"humanqa/domain/command"
	"humanqa/domain/command/commandtest"
	"humanqa/domain/credits"
	"humanqa/domain/job"
)

// memoryLog keeps the log's contract in memory, so that tests can decide which
// write fails and whether it was persisted.
type memoryLog struct {
	mu      sync.Mutex
	streams map[string][]domain.Recorded
	next    uint64
	appends map[string]int
	// fault is asked before each append; nil means go on.
	fault func(stream string, events []domain.NewEvent) *fault
	// before is called outside the lock before each append.
	before func(stream string)
}

type fault struct {
	persist bool
	err     error
}

func newMemoryLog() *memoryLog {
	return &memoryLog{streams: map[string][]domain.Recorded{}, appends: map[string]int{}}
}

func (m *memoryLog) Append(_ context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent) (domain.Written, error) {
	if m.before != nil {
		m.before(stream)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var f *fault
	if m.fault != nil {
		f = m.fault(stream, events)
	}
	if f != nil && !f.persist {
		return domain.Written{}, f.err
	}
	has := m.streams[stream]
	if int(expected) != len(has)-1 {
		return domain.Written{}, domain.ErrWrongRevision
	}
	m.appends[stream]++
	for _, e := range events {
		has = append(has, domain.Recorded{
			ID: e.ID, Stream: stream, Revision: uint64(len(has)), Type: e.Event.EventType(),
			Position: domain.Position{Commit: m.next, Prepare: m.next}, Meta: e.Meta, Event: e.Event,
		})
		m.next++
	}
	m.streams[stream] = has
	if f != nil {
		return domain.Written{}, f.err
	}
	last := has[len(has)-1]
	return domain.Written{Revision: last.Revision, Position: last.Position}, nil
}

func (m *memoryLog) Load(_ context.Context, stream string, from uint64, each func(domain.Recorded) error) error {
	m.mu.Lock()
	var events []domain.Recorded
	if has := m.streams[stream]; from < uint64(len(has)) {
		events = slices.Clone(has[from:])
	}
	m.mu.Unlock()
	for _, e := range events {
		if err := each(e); err != nil {
			return err
		}
	}
	return nil
}

// all gives every event in the log's order.
func (m *memoryLog) all() []domain.Recorded {
	m.mu.Lock()
	defer m.mu.Unlock()
	ordered := make([]domain.Recorded, m.next)
	for _, events := range m.streams {
		for _, e := range events {
			ordered[e.Position.Commit] = e
		}
	}
	return ordered
}

func (m *memoryLog) types(stream string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for _, e := range m.streams[stream] {
		out = append(out, e.Type)
	}
	return out
}

// openSealer marks what was sealed instead of hiding it.
type openSealer struct{}

func (openSealer) Seal(_ context.Context, account, stream string, plain []byte) (string, error) {
	return "sealed:" + account + ":" + stream + ":" + string(plain), nil
}

func (openSealer) Unseal(_ context.Context, account, stream, sealed string) ([]byte, error) {
	prefix := "sealed:" + account + ":" + stream + ":"
	if len(sealed) < len(prefix) || sealed[:len(prefix)] != prefix {
		return nil, errors.New("sealed for something else")
	}
	return []byte(sealed[len(prefix):]), nil
}

func (openSealer) Fingerprint(_ context.Context, account string, secret []byte) (string, error) {
	sum := sha256.Sum256(append([]byte(account), secret...))
	return hex.EncodeToString(sum[:]), nil
}

func newService(log domain.Log) *command.Service {
	return command.New(command.Deps{
		Log: log, Sealer: openSealer{}, AI: commandtest.AI{}, Nominate: commandtest.NoPast{}, Now: time.Now, ClaimsPerChecker: 1,
	})
}

// bundle is a service on a log with one account that holds some credits.
type bundle struct {
	*command.Service
	log     *memoryLog
	account string
}

func setup(t *testing.T, amount domain.Credits) bundle {
	t.Helper()
	log := newMemoryLog()
	b := bundle{Service: newService(log), log: log}
	account, _, err := b.CreateAccount(t.Context(), operator(), "Acme", false)
	if err != nil {
		t.Fatal(err)
	}
	b.account = account
	if amount > 0 {
		if _, _, err := b.GrantCredits(t.Context(), operator(), account, amount, nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		b.Drain()
		b.checkInvariants(t)
	})
	return b
}

func operator() command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "operator"}
}

func (b bundle) cause() command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "key:k", AccountID: b.account}
}

func (b bundle) checkerCause(id string) command.Cause {
	return command.Cause{CommandID: command.NewCommandID(), Actor: "checker:" + id}
}

func (b bundle) submit(ctx context.Context, c command.Cause) (command.SubmittedJob, error) {
	return b.SubmitJob(ctx, c, command.SubmitJob{
		URL: "https://example.com", Title: "Title", Description: "Look", Type: job.GeneralQA, TypeEcho: "general_qa",
		Source: "api", Items: []command.NewItem{{Description: "loads", Severity: job.Major}},
	})
}

func (b bundle) submitted(t *testing.T) string {
	t.Helper()
	j, err := b.submit(t.Context(), b.cause())
	if err != nil {
		t.Fatal(err)
	}
	return j.JobID
}

func (b bundle) newChecker(t *testing.T, accounts ...string) string {
	t.Helper()
	c, err := b.CreateChecker(t.Context(), operator(), "Ann", accounts)
	if err != nil {
		t.Fatal(err)
	}
	return c.CheckerID
}

// ledger folds the account's ledger.
func (b bundle) ledger() (st credits.State) {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	for _, e := range b.log.streams[domain.CreditsStream(b.account)] {
		st = credits.Evolve(st, e.Event)
	}
	return st
}

// checkInvariants audits the log as it is at the end of a test.
func (b bundle) checkInvariants(t *testing.T) {
	t.Helper()
	check := audit.New()
	for _, e := range b.log.all() {
		check.See(e)
	}
	for _, finding := range check.Findings(time.Now()) {
		t.Error(finding)
	}
}

// together runs n calls at once and counts the ones that succeed; every other
// error is handed to refused.
func together(n int, call func(i int) error, refused func(error)) int {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		good int
	)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			err := call(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				good++
			} else {
				refused(err)
			}
		})
	}
	close(start)
	wg.Wait()
	return good
}

func wantKind(t *testing.T, err error, kind domain.Kind) {
	t.Helper()
	if !domain.IsKind(err, kind) {
		t.Errorf("got %v, want an error of kind %d", err, kind)
	}
}

func wantTypes(t *testing.T, log *memoryLog, stream string, want ...string) {
	t.Helper()
	if got := log.types(stream); !slices.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", stream, got, want)
	}
}

var errCut = fmt.Errorf("connection cut: %w", domain.ErrUnknownOutcome)
