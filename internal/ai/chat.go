package ai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"humanqa/internal/backoff"
	"humanqa/internal/guard"
)

// DefaultBaseURL is the vendor's own.
const DefaultBaseURL = "https://api.openai.com/v1"

const (
	patience    = time.Minute      // for one checklist or report, retries included
	attemptTime = 30 * time.Second // for one request
	attempts    = 4
	answers     = 2         // how often a question is put when its answer is malformed
	maxAnswer   = 512 << 10 // bytes of one response
	firstDelay  = 500 * time.Millisecond
	maxDelay    = 8 * time.Second
	// answerTokens is the estimated cost of an answer before it arrives.
	answerTokens = 1500
)

var (
	errBudget   = errors.New("the account's budget for this minute is spent")
	errPatience = errors.New("the time is up")
	errResting  = errors.New("the server failed several times in a row and is left alone for a while")
	errNotTaken = errors.New("the server does not take the question")
)

// chat asks a server that speaks OpenAI's chat completions, of which it needs one
// call (completion.go). Each attempt counts against the budget, and one that timed
// out is retried too.
type chat struct {
	server      server
	model       string
	budget      *budget
	breaker     *gobreaker.CircuitBreaker[struct{}]
	patience    time.Duration
	attemptTime time.Duration
	wait        func(context.Context, time.Duration) error
	// plain says that the server refused json_schema and took json_object.
	plain atomic.Bool
}

func newChat(cfg Config) *chat {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &chat{
		server: server{
			base: cmp.Or(cfg.BaseURL, DefaultBaseURL), key: string(cfg.Key),
			http: &http.Client{
				Transport: guard.Answers(transport),
				// The key goes to the configured server and nowhere else.
				CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			},
		},
		model: cfg.Model, budget: newBudget(time.Now), breaker: newBreaker(),
		patience: patience, attemptTime: attemptTime, wait: wait,
	}
}

// question is a question to the model: the task is ours, the data can come from any
// source. read takes the answer, or refuses it with errMalformed.
type question struct {
	account string
	task    string
	data    any
	schema  schema
	read    func(answer string) error
}

// ask puts the question, unless the breaker is open. An error means that the model does
// not do the task.
func (c *chat) ask(ctx context.Context, q question) error {
	_, err := c.breaker.Execute(func() (struct{}, error) {
		err := c.put(ctx, q)
		if err != nil && errors.Is(ctx.Err(), context.Canceled) {
			err = fmt.Errorf("%w: %w", context.Canceled, err)
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return errResting
	}
	return err
}

// put puts the question until an answer is taken, the budget is spent, or the
// time is up.
func (c *chat) put(ctx context.Context, q question) error {
	ctx, cancel := context.WithTimeout(ctx, c.time(ctx))
	defer cancel()
	data, err := asData(q.data)
	if err != nil {
		return err
	}
	for range answers {
		var answer string
		if answer, err = c.answer(ctx, q, data); err == nil {
			err = q.read(answer)
		}
		if !errors.Is(err, errMalformed) {
			return err
		}
	}
	return err
}

// time leaves the caller a fifth of its own time, to use the answer of the rules.
func (c *chat) time(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return c.patience
	}
	return min(c.patience, time.Until(deadline)*4/5)
}

// answer gets the model's text, over as many requests as that takes.
func (c *chat) answer(ctx context.Context, q question, data string) (string, error) {
	plain, estimate := c.plain.Load(), (len(q.task)+len(data))/4+answerTokens
	for attempt := 0; ; {
		if !c.budget.bookTokens(q.account, estimate) {
			return "", errBudget
		}
		done, failed := c.request(ctx, q, data, plain)
		switch {
		case failed == nil:
			c.plain.Store(plain)
			c.budget.correctTokens(q.account, estimate, int(done.Usage.TotalTokens))
			return done.text()
		case ctx.Err() != nil:
			return "", errPatience
		case failed.refused() && !plain:
			plain = true // perhaps it only does not know json_schema
			continue
		case failed.refused():
			return "", fmt.Errorf("%w: %w", errNotTaken, failed.err)
		case !failed.again:
			return "", failed.err
		}
		if attempt++; attempt == attempts {
			return "", failed.err
		}
		if err := c.wait(ctx, failed.delay(attempt)); err != nil {
			return "", fmt.Errorf("%w: %w", errPatience, failed.err)
		}
	}
}

// failure is a request that brought no completion.
type failure struct {
	err    error // quotes nothing that the server said
	status int   // 0: there was no answer
	again  bool
	after  time.Duration // the wait that the server asked for
}

// refused says that the server refused the form of the request.
func (f failure) refused() bool {
	return f.status == http.StatusBadRequest || f.status == http.StatusUnprocessableEntity
}

// delay is exponential, and up to half of it is random. If the server asked for a longer
// wait, that wait counts.
func (f failure) delay(attempt int) time.Duration {
	return max(f.after, backoff.Jitter(backoff.Delay(attempt, firstDelay, maxDelay)))
}

func (c *chat) request(ctx context.Context, q question, data string, plain bool) (*completion, *failure) {
	ctx, cancel := context.WithTimeout(ctx, c.attemptTime)
	defer cancel()
	done, got, err := c.server.complete(ctx, c.prompt(q, data, plain))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &failure{err: fmt.Errorf("%w: it is larger than %d KiB", errMalformed, maxAnswer>>10)}
	case ctx.Err() != nil:
		return nil, &failure{err: errors.New("the server did not answer in time"), again: true}
	case got.status == 0:
		return nil, &failure{err: errors.New("the server cannot be reached"), again: true}
	case got.status/100 != 2:
		return nil, &failure{
			err: fmt.Errorf("the server answered %d", got.status), status: got.status,
			again: got.status == http.StatusTooManyRequests || got.status == http.StatusRequestTimeout ||
				got.status >= http.StatusInternalServerError,
			after: backoff.RetryAfter(got.retryAfter, time.Now()),
		}
	case err != nil:
		return nil, &failure{err: fmt.Errorf("%w: it is not a chat completion", errMalformed)}
	}
	return done, nil
}

// wait waits, unless ctx would end before: then it fails at once.
func wait(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return context.DeadlineExceeded
	}
	return backoff.Wait(ctx, d)
}
