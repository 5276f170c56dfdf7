package send

import (
	"cmp"
	"context"
	"io"
	"net"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/internal/guard"
	"humanqa/internal/tracing"
)

// Vault opens sealed secrets.
type Vault interface {
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
}

// Config configures the Dispatcher. The zero value of a field with a default means that
// default.
type Config struct {
	// DSN is the database's URL: the dispatcher listens on a connection of its own.
	// Without it, the dispatcher polls.
	DSN string
	// Allow lists private networks that may be delivered to.
	Allow guard.Allow
	// CAFile holds further CA certificates to trust, PEM. It may appear or
	// change at any time.
	CAFile string
	// Resolver finds addresses; nil means the system's.
	Resolver *net.Resolver
	Log      logrus.FieldLogger
	// LogName names the event log and its generation; nil or empty: it is not known.
	LogName func() string
	// Tracer makes the spans of attempts; nil makes none.
	Tracer *tracing.Tracer

	// Pool is how many requests run at once (256). PerEndpoint is how many of them go to
	// a new endpoint (8). MostPerEndpoint is how many go to an endpoint that has proved
	// to answer, while half of the pool is free for others (64).
	Pool            int
	PerEndpoint     int
	MostPerEndpoint int
	// Timeout ends a request (10 s), Lease a claim (15 s). Drain is how long a
	// stop waits for running requests (3 s).
	Timeout time.Duration
	Lease   time.Duration
	Drain   time.Duration
	// Retries are the waits after the first, second … failure; one more
	// failure is the last (1, 10 and 60 s; specification, "Delivery rules").
	Retries []time.Duration
	// Poll bounds how late the dispatcher notices work without a notification (15 s).
	Poll time.Duration
}

func (c Config) withDefaults() Config {
	c.Pool = cmp.Or(c.Pool, 256)
	c.PerEndpoint = cmp.Or(c.PerEndpoint, 8)
	c.MostPerEndpoint = cmp.Or(c.MostPerEndpoint, max(64, c.PerEndpoint))
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Lease = cmp.Or(c.Lease, c.Timeout+5*time.Second)
	c.Drain = cmp.Or(c.Drain, 3*time.Second)
	c.Poll = cmp.Or(c.Poll, 15*time.Second)
	if c.Log == nil {
		quiet := logrus.New()
		quiet.SetOutput(io.Discard)
		c.Log = quiet
	}
	if c.Retries == nil {
		c.Retries = []time.Duration{time.Second, 10 * time.Second, time.Minute}
	}
	return c
}
