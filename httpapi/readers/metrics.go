package readers

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/internal/metrics"
)

const (
	// scrapeLimit bounds the time of a scrape.
	scrapeLimit = time.Second
	// scraped bounds the readers that a scrape looks at, and lookedAt the events behind each.
	scraped, lookedAt = 5000, 200
)

const allSQL = listSQL + `
ORDER BY r.last_seen_at DESC
LIMIT $2`

// Collect implements prometheus.Collector. A scrape that cannot read the rows gives no
// metrics.
func (s *Readers) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeLimit)
	defer cancel()
	list, err := s.list(ctx, lookedAt, allSQL, lookedAt+1, scraped)
	if err != nil {
		s.log.WithError(err).Debug("the readers' metrics cannot be read")
		return
	}
	now := s.now()
	states := map[State]int{Current: 0, Behind: 0, Refused: 0}
	var oldest time.Duration
	for _, r := range list {
		r.More = false // the walk of a scrape is short
		states[r.State(now)]++
		oldest = max(oldest, r.Lag(now))
	}
	gauge := metrics.Gauges(to)
	for state, n := range states {
		gauge("humanqa_feed_readers", "Named readers of the feed of events: current, more than an hour behind, or refused for their cursor.",
			float64(n), "state", string(state))
	}
	gauge("humanqa_feed_reader_lag_seconds", "Age of the oldest event that a named reader of the feed has not read.", oldest.Seconds())
}
