package mail

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/internal/metrics"
	"humanqa/internal/pgpool"
)

func newOutcomes() *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "humanqa_mail_attempts_total",
		Help: "Attempts to send a letter, by what they led to: sent, failed (it is tried again), refused (for good), dropped (it is not wanted any more).",
	}, []string{"outcome"})
	for _, state := range []string{"sent", "failed", "refused", "dropped"} {
		v.WithLabelValues(state)
	}
	return v
}

func (s *Sender) count(state string) {
	if state == "waiting" {
		state = "failed"
	}
	s.outcomes.WithLabelValues(state).Inc()
}

// scrapeLimit bounds the one query that a scrape makes.
const scrapeLimit = time.Second

// Collectors give the sender's metrics.
func (s *Sender) Collectors() []prometheus.Collector {
	return []prometheus.Collector{s.people, s.chats, s.outcomes, metrics.Func(s.collectWaiting)}
}

// collectWaiting asks Postgres: its number is that of all processes. A scrape that
// cannot reach it gives none.
func (s *Sender) collectWaiting(gauge metrics.Gauge) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	late, err := countWaiting(ctx, s.cfg.DB)
	if err != nil {
		s.cfg.Log.WithError(err).Debug("the metrics of e-mail cannot be read")
		return
	}
	gauge("humanqa_mail_oldest_seconds", "How long the oldest letter has waited that is not sent yet.", late.Oldest.Float64)
}

// waiting counts the letters to people that are not sent yet. A chat that takes nothing is no
// trouble of the operator's.
type waiting struct {
	Count  int             `db:"count"`
	Oldest sql.NullFloat64 `db:"oldest"` // seconds
}

const waitingSQL = `
SELECT count(*) AS count, extract(epoch FROM now() - min(created_at)) AS oldest
FROM mail.letters
WHERE state = 'waiting'
  AND account_id IS NULL`

func countWaiting(ctx context.Context, db *sqlx.DB) (waiting, error) {
	return pgpool.One[waiting](ctx, db, "the number of letters that wait", waitingSQL)
}

// Note tells operators that letters have waited for long, whichever process sends them;
// empty: none has.
func Note(ctx context.Context, db *sqlx.DB) (string, error) {
	w, err := countWaiting(ctx, db)
	late := time.Duration(w.Oldest.Float64 * float64(time.Second))
	if err != nil || late < lateAfter {
		return "", err
	}
	return fmt.Sprintf("%d letters wait, the oldest for %s: see the log for what the mail server says", w.Count, late.Round(time.Minute)), nil
}
