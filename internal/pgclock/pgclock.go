// Package pgclock reads Postgres' clock. Due times are compared with that clock
// (projections/timers, leases, rate limits), so events are stamped by it too. Then a
// machine with a wrong clock fires neither early nor late, and two machines agree. A
// machine that is more than 2 s off shows in the log and in /readyz.
package pgclock

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/sirupsen/logrus"

	"humanqa/internal/backoff"
)

const (
	// Tolerated is how far two clocks may be apart without a warning.
	Tolerated = 2 * time.Second
	// measureEvery paces the comparison, measureTime bounds one.
	measureEvery = 5 * time.Second
	measureTime  = 5 * time.Second
	// tooSlow is the time from which an answer is too slow to compare the clocks.
	tooSlow = time.Second
	// step is the least change of the difference that is followed: a smaller one comes
	// from the way to Postgres and back.
	step = 100 * time.Millisecond
)

// Clock is this machine's clock, set by Postgres'. It may be read by many
// goroutines.
type Clock struct {
	db    *sqlx.DB
	log   logrus.FieldLogger
	local func() time.Time
	ahead atomic.Int64 // Postgres' before the machine's, in nanoseconds
	told  bool         // Run's own
}

// Open compares the clocks for the first time. local is the machine's.
func Open(ctx context.Context, db *sqlx.DB, log logrus.FieldLogger, local func() time.Time) (*Clock, error) {
	c := &Clock{db: db, log: log, local: local}
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	c.tell()
	return c, nil
}

// Now is the time.
func (c *Clock) Now() time.Time { return c.local().Add(time.Duration(c.ahead.Load())) }

// Ahead is how far Postgres' clock is before this machine's; below zero it is behind.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Problem says how far the clocks are apart; nothing when that is tolerated.
func (c *Clock) Problem() string {
	ahead := time.Duration(c.ahead.Load())
	switch {
	case ahead > Tolerated:
		return fmt.Sprintf("Postgres' clock is %s ahead of this machine's", ahead.Round(step))
	case ahead < -Tolerated:
		return fmt.Sprintf("Postgres' clock is %s behind this machine's", (-ahead).Round(step))
	}
	return ""
}

// Run compares the clocks until ctx ends. While Postgres does not answer the
// difference stays as it was.
func (c *Clock) Run(ctx context.Context) {
	for backoff.Wait(ctx, measureEvery) == nil {
		if err := c.measure(ctx); err == nil {
			c.tell()
		}
	}
}

// tell warns once when the clocks part, and logs when they have come together.
func (c *Clock) tell() {
	switch problem := c.Problem(); {
	case problem != "" && !c.told:
		c.told = true
		c.log.Warn(problem + ": the time is told by Postgres' clock; set both by NTP")
	case problem == "" && c.told:
		c.told = false
		c.log.Info("Postgres' clock and this machine's agree again")
	}
}

func (c *Clock) measure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	begun, since := c.local(), time.Now()
	var theirs time.Time
	if err := c.db.GetContext(ctx, &theirs, `SELECT clock_timestamp()`); err != nil {
		return fmt.Errorf("ask Postgres for the time: %w", err)
	}
	took := time.Since(since)
	if took > tooSlow {
		return nil // the next one tells more
	}
	ahead := theirs.Sub(begun.Add(took / 2))
	if changed := ahead - time.Duration(c.ahead.Load()); changed > step || changed < -step {
		c.ahead.Store(int64(ahead))
	}
	return nil
}
