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
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

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

func (openSealer) Fingerprint(_ context.Context, account, use string, secret []byte) (string, error) {
	sum := sha256.Sum256([]byte(account + "\n" + use + "\n" + string(secret)))
	return hex.EncodeToString(sum[:]), nil
}

func newService(log domain.Log) *command.Service {
	return command.New(command.Deps{
		Log: log, Sealer: openSealer{}, AI: commandtest.AI{}, Reads: commandtest.NoReads{}, Now: time.Now, ClaimsPerChecker: 1,
	})
}

// bundle is a service on a log with one account that holds some credits.
type bundle struct {
	*command.Service
	log     *logtest.Memory
	account string
}

func setup(t *testing.T, amount domain.Credits) bundle {
	t.Helper()
	log := logtest.New()
	b := bundle{Service: newService(log), log: log}
	account, _, err := b.CreateAccount(t.Context(), operator(), "Acme", false)
	must.NoError(t, err)
	b.account = account
	if amount > 0 {
		_, _, err := b.GrantCredits(t.Context(), operator(), account, amount, nil, "")
		must.NoError(t, err)
	}
	t.Cleanup(func() {
		b.Drain()
		b.checkInvariants(t)
	})
	return b
}

func operator() command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "operator"}
}

func (b bundle) cause() command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "key:k", AccountID: b.account}
}

func (b bundle) checkerCause(id string) command.Cause {
	return command.Cause{CommandID: domain.NewCommandID(), Actor: "checker:" + id}
}

func (b bundle) submit(ctx context.Context, c command.Cause) (command.SubmittedJob, error) {
	return b.submitTo(ctx, b.Service, c)
}

func (b bundle) submitTo(ctx context.Context, s *command.Service, c command.Cause) (command.SubmittedJob, error) {
	return s.SubmitJob(ctx, c, command.SubmitJob{
		Submission: job.Submission{
			URL: "https://example.com", Title: "Title", Description: "Look", Type: job.GeneralQA, TypeEcho: "general_qa",
			Source: "api",
		}, Items: []command.NewItem{{Description: "loads", Severity: job.Major}},
	})
}

func (b bundle) submitted(t *testing.T) string {
	t.Helper()
	j, err := b.submit(t.Context(), b.cause())
	must.NoError(t, err)
	return j.JobID
}

func (b bundle) newChecker(t *testing.T, accounts ...string) string {
	t.Helper()
	c, err := b.CreateChecker(t.Context(), operator(), "Ann", accounts)
	must.NoError(t, err)
	return c.CheckerID
}

// ledger folds the account's ledger.
func (b bundle) ledger() (st credits.State) {
	for _, e := range b.log.Stream(domain.CreditsStream(b.account)) {
		st = credits.Evolve(st, e.Event)
	}
	return st
}

// checkInvariants audits the log as it is at the end of a test.
func (b bundle) checkInvariants(t *testing.T) {
	t.Helper()
	check := audit.New()
	for _, e := range b.log.All() {
		check.See(e)
	}
	for _, finding := range check.Findings(time.Now()) {
		t.Error(finding)
	}
	for _, e := range overreaching(b.log.All()) {
		t.Errorf("%s has no right to %s in %s", e.Meta.Actor, e.Type, e.Stream)
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

func wantTypes(t *testing.T, log *logtest.Memory, stream string, want ...string) {
	t.Helper()
	if got := log.Types(stream); !slices.Equal(got, want) {
		t.Errorf("%s holds %v, want %v", stream, got, want)
	}
}

var errCut = fmt.Errorf("connection cut: %w", domain.ErrUnknownOutcome)
