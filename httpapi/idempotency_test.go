package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/credits"
	"humanqa/httpapi/admit"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
)

const replayedHeader = "Idempotent-Replayed"

func TestTheSameKeyAndBodyHaveOneEffectAndTheSameBytes(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for path, body := range map[string]string{
		"/v1/jobs":     aJob,
		"/v1/projects": `{"name":"Shop","webhookUrl":"https://hooks.example.com/in"}`, // its answer holds a token
	} {
		first := s.call(key, "POST", path, body, "Idempotency-Key", "order 1")
		first.want(http.StatusCreated)
		equal(t, first.Header().Get(replayedHeader), "")
		s.submitted(key) // the balance moves on, the answer does not
		again := s.call(key, "POST", path, body, "Idempotency-Key", "order 1")
		again.want(http.StatusCreated)
		equal(t, again.Header().Get(replayedHeader), "true")
		equal(t, again.Body.String(), first.Body.String())
		s.call(key, "POST", path, strings.Replace(body, "{", "{ ", 1), "Idempotency-Key", "order 1").
			refused(http.StatusConflict, domain.CodeConflict)
		s.call(key, "POST", path, body, "Idempotency-Key", "order 2").want(http.StatusCreated)
	}
	equal(t, s.count("project.created"), 2)
	equal(t, s.count("job.created"), 4)

	var sealed string
	must.NoError(t, s.db.GetContext(t.Context(), &sealed, `SELECT string_agg(body, ' ') FROM http_idempotency`))
	// Longer than what a ciphertext spells by chance.
	if strings.Contains(sealed, "/hooks/deploy/") || strings.Contains(sealed, `"jobId"`) {
		t.Errorf("answers lie in the clear: %s", sealed)
	}
}

func TestAKeyBelongsToItsAccountAndPath(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, one := s.account(100)
	_, other := s.account(100)
	s.call(one, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").want(http.StatusCreated)
	s.call(other, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").want(http.StatusCreated)
	s.call(one, "POST", "/v1/projects", `{"name":"Shop"}`, "Idempotency-Key", "k").want(http.StatusCreated)
	second := s.key(accountID, command.IssueKey{Scope: account.ScopeFull})
	equal(t, s.call(second, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").Header().Get(replayedHeader), "true")
	equal(t, s.count("job.created"), 2)
}

func TestRefusalsUnderAKey(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(0)
	under := []string{"Idempotency-Key", "k"}
	s.call(key, "POST", "/v1/jobs", `{}`, under...).refused(http.StatusBadRequest, domain.CodeInvalidRequest)

	poor := s.call(key, "POST", "/v1/jobs", aJob, under...)
	poor.refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	_, at, err := s.commands.GrantCredits(t.Context(), operator(uuid.New()), accountID, 100, nil, "test")
	s.visible(at, err)
	again := s.call(key, "POST", "/v1/jobs", aJob, under...) // also checks that requestId is this request's
	again.refused(http.StatusPaymentRequired, domain.CodeInsufficientCredits)
	equal(t, again.Header().Get(replayedHeader), "true")

	missing := strings.Replace(aJob, "{", `{"projectId":"`+uuid.NewString()+`",`, 1)
	for _, replayed := range []string{"", "true"} {
		r := s.call(key, "POST", "/v1/jobs", missing, "Idempotency-Key", "m")
		r.refused(http.StatusNotFound, domain.CodeNotFound)
		equal(t, r.Header().Get(replayedHeader), replayed)
	}
	equal(t, s.count("credits.debited"), 0)
}

func TestAMalformedKeyIsRefused(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	for _, bad := range []string{"", "ü", "a\tb", strings.Repeat("k", 256)} {
		equal(t, s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", bad).paths(), []string{"Idempotency-Key"})
	}
	s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", strings.Repeat("k ", 127)+"!").want(http.StatusCreated)
	equal(t, s.call(key, "POST", "/v1/jobs", `{"url":7}`, "Idempotency-Key", "").paths(),
		[]string{"Idempotency-Key", "description", "jobType", "title", "url"})
}

// A crash is a write whose outcome nobody learns of: the request ends without
// an answer, its row stays in flight until the lease is over.
// A repeat that comes after the charge was given back begins anew, under the same
// key.
func TestARepeatAfterTheChargeWasGivenBackIsAFreshJob(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(5)
	s.log.Fail(logtest.Once(logtest.Of("job.created")), false, domain.ErrUnknownOutcome)
	under := []string{"Idempotency-Key", "k"}
	s.call(key, "POST", "/v1/jobs", aJob, under...).refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	var lost string
	err := s.log.Load(t.Context(), domain.CreditsStream(accountID), 0, func(r domain.Recorded) error {
		if e, ok := r.Event.(*credits.Debited); ok {
			lost = e.JobID
		}
		return nil
	})
	if err != nil || lost == "" {
		t.Fatalf("charged for %q: %v", lost, err)
	}
	c := operator(uuid.New())
	c.AccountID = accountID
	at, err := s.commands.VoidJob(t.Context(), c, lost)
	s.visible(at, err)

	first := s.call(key, "POST", "/v1/jobs", aJob, under...).want(http.StatusCreated)
	again := s.call(key, "POST", "/v1/jobs", aJob, under...)
	equal(t, again.want(http.StatusCreated), first)
	equal(t, again.Header().Get("Idempotent-Replayed"), "true")
	if first["jobId"] == lost {
		t.Error("the job that was given up is answered")
	}
	with(t, s.call(key, "GET", "/v1/credits", "").want(http.StatusOK), map[string]any{"available": 0.0, "used": 5.0})
}

func TestACrashBetweenChargeAndAnswerNeverChargesTwice(t *testing.T) {
	t.Parallel()
	all := own(t)
	for _, c := range []struct {
		name, event string
		persisted   bool
	}{
		{"before the charge", "credits.debited", false},
		{"after the charge", "credits.debited", true},
		{"before the job", "job.created", false},
		{"after the job", "job.created", true},
	} {
		t.Run(c.name, func(t *testing.T) { // one after the other: the log fails for all
			s := all.beneath(t)
			_, key := s.account(100)
			s.log.Fail(logtest.Once(logtest.Of(c.event)), c.persisted, domain.ErrUnknownOutcome)
			crashed := s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k")
			if crashed.Code != http.StatusServiceUnavailable {
				t.Fatalf("got %d: %s", crashed.Code, crashed.Body)
			}
			s.call(key, "POST", "/v1/jobs", `{}`, "Idempotency-Key", "k").refused(http.StatusBadRequest, domain.CodeInvalidRequest)
			other := strings.Replace(aJob, "Checkout", "Another", 1)
			s.call(key, "POST", "/v1/jobs", other, "Idempotency-Key", "k").refused(http.StatusConflict, domain.CodeConflict)

			retried := s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k")
			with(t, retried.want(http.StatusCreated), map[string]any{"creditsDeducted": 5.0, "creditsRemaining": 95.0})
			equal(t, s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").Body.String(), retried.Body.String())
			equal(t, s.count("credits.debited"), 1)
			equal(t, s.count("job.created"), 1)
		})
	}
}

func TestARequestInFlightIsNotRepeatedUntilItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	at := admit.KeyScope{Owner: accountID, Path: "/v1/jobs", Key: "k"}
	under := []string{"Idempotency-Key", "k"}
	ctx := t.Context()

	// A process that died right after its command: it left row and job behind.
	s.call(key, "POST", "/v1/jobs", aJob, under...).want(http.StatusCreated)
	_, err := s.db.ExecContext(ctx, `UPDATE http_idempotency SET status = NULL, body = NULL, leased_until = now() + interval '10 seconds' WHERE account_id = $1`, accountID)
	must.NoError(t, err)
	waiting := s.call(key, "POST", "/v1/jobs", aJob, under...)
	waiting.refused(http.StatusConflict, domain.CodeConflict)
	equal(t, waiting.Header().Get("Retry-After"), "1")

	_, err = s.db.ExecContext(ctx, `UPDATE http_idempotency SET leased_until = now() WHERE account_id = $1`, accountID)
	must.NoError(t, err)
	s.call(key, "POST", "/v1/jobs", aJob, under...).want(http.StatusCreated)
	equal(t, s.count("job.created"), 1)

	// The slow owner of a lease that somebody took over: the first answer that
	// was stored counts.
	var issued uuid.UUID
	must.NoError(t, s.db.GetContext(ctx, &issued, `SELECT command_id FROM http_idempotency WHERE account_id = $1`, accountID))
	earlier, err := s.writer.Keys.StoreAnswer(ctx, at, issued, wire.Answer{Status: 201, Body: []byte(`{"late":true}`)})
	if err != nil || earlier == nil || strings.Contains(string(earlier.Body), "late") {
		t.Errorf("got %v, %v", earlier, err)
	}
}

// slowCommands blocks submissions until they are let go.
type slowCommands struct {
	v1.Submitter
	begun, goOn chan struct{}
}

func (c slowCommands) SubmitJob(ctx context.Context, cause command.Cause, in command.SubmitJob) (command.SubmittedJob, error) {
	close(c.begun)
	<-c.goOn
	return c.Submitter.SubmitJob(ctx, cause, in)
}

// A process that dies leaves its keys leased for a moment only; a request that
// lives, however slowly, keeps its own.
func TestALeaseIsShortAndRenewedByALivingRequest(t *testing.T) {
	t.Parallel()
	if admit.LeaseFor > 3*time.Second || admit.RenewEvery > admit.LeaseFor/3 {
		t.Errorf("a lease of %s is renewed every %s", admit.LeaseFor, admit.RenewEvery)
	}
	s := shared(t).node(nil)
	accountID, key := s.account(100)
	slow := slowCommands{s.clients.Submits, make(chan struct{}), make(chan struct{})}
	s.clients.Submits = slow
	answered := make(chan result, 1)
	go func() { answered <- s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k") }()
	<-slow.begun
	var until, renewed time.Time
	leasedUntil := `SELECT leased_until FROM http_idempotency WHERE account_id = $1`
	must.NoError(t, s.db.GetContext(t.Context(), &until, leasedUntil, accountID))
	eventually.True(t, "the lease is renewed", func() bool {
		return s.db.GetContext(t.Context(), &renewed, leasedUntil, accountID) == nil && renewed.After(until)
	})
	s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").refused(http.StatusConflict, domain.CodeConflict)
	close(slow.goOn)
	(<-answered).want(http.StatusCreated)
	equal(t, s.count("job.created"), 1)
}

// leftCommands submits, loses its client, and then fails to tell the outcome.
type leftCommands struct {
	v1.Submitter
	leave context.CancelFunc
}

func (c leftCommands) SubmitJob(ctx context.Context, cause command.Cause, in command.SubmitJob) (command.SubmittedJob, error) {
	_, err := c.Submitter.SubmitJob(ctx, cause, in)
	c.leave()
	return command.SubmittedJob{}, errors.Join(err, errors.New("the outcome could not be read"))
}

// A client that gives up repeats its request. That it has gone says nothing of what was written.
func TestAClientThatLeavesAFailingRequestIsChargedOnce(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	ctx, leave := context.WithCancel(t.Context())
	whole := s.clients.Submits
	s.clients.Submits = leftCommands{whole, leave}
	s.callWith(ctx, key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k")
	s.clients.Submits = whole
	again := s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").want(http.StatusCreated)
	with(t, again, map[string]any{"creditsDeducted": 5.0, "creditsRemaining": 95.0})
	equal(t, s.count("job.created"), 1)
}

func TestParallelRequestsUnderOneKey(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(100)
	const n = 16
	results := make([]result, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { results[i] = s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k") })
	}
	all.Wait()
	bodies := map[string]bool{}
	for _, r := range results {
		switch r.Code {
		case http.StatusCreated:
			bodies[r.Body.String()] = true
		case http.StatusConflict:
			equal(t, r.Header().Get("Retry-After"), "1")
		default:
			t.Errorf("got %d: %s", r.Code, r.Body)
		}
	}
	equal(t, len(bodies), 1)
	equal(t, s.count("job.created"), 1)
}

func TestAKeyIsForgottenAfterADay(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, key := s.account(100)
	age := func() {
		_, err := s.db.ExecContext(t.Context(), `UPDATE http_idempotency SET created_at = created_at - interval '25 hours' WHERE account_id = $1`, accountID)
		must.NoError(t, err)
	}
	s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").want(http.StatusCreated)
	age()
	other := strings.Replace(aJob, "Checkout", "Another", 1)
	s.call(key, "POST", "/v1/jobs", other, "Idempotency-Key", "k").want(http.StatusCreated)
	equal(t, s.count("job.created"), 2)
	must.NoError(t, s.writer.Keys.Sweep(t.Context()))
	equal(t, s.call(key, "POST", "/v1/jobs", other, "Idempotency-Key", "k").Header().Get(replayedHeader), "true")
	age()
	must.NoError(t, s.writer.Keys.Sweep(t.Context()))
	var left int
	must.NoError(t, s.db.GetContext(t.Context(), &left, `SELECT count(*) FROM http_idempotency WHERE account_id = $1`, accountID))
	equal(t, left, 0)
}

// brokenVault cannot seal: the answer cannot be stored.
type brokenVault struct{ command.Sealer }

func (brokenVault) Seal(context.Context, string, string, []byte) (string, error) {
	return "", errors.New("no key")
}

func TestAnAnswerThatCannotBeStoredIsNotSent(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(100)
	s.writer.Keys.Vault = brokenVault{s.deps.Vault}
	s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").refused(http.StatusServiceUnavailable, domain.CodeUnavailable)
	s.writer.Keys.Vault = s.deps.Vault
	s.call(key, "POST", "/v1/jobs", aJob, "Idempotency-Key", "k").want(http.StatusCreated)
	equal(t, s.count("job.created"), 1)
}

func TestTheUpkeepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
