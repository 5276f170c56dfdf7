package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain/command"
	"humanqa/internal/ai"
	"humanqa/internal/metrics"
)

// sizeMetrics are the sizes that grow with the log.
func sizeMetrics(commands *command.Service) metrics.Func {
	return func(gauge metrics.Gauge) {
		is := commands.Growth()
		for category, events := range is.Streams {
			gauge("humanqa_stream_longest_events", "The longest stream that this process has run a command on.", float64(events),
				"category", category)
		}
		gauge("humanqa_ledger_book_events", "The most events since a ledger's newest close.", float64(is.Book.Events))
		gauge("humanqa_ledger_book_debits", "The most debits of a ledger that are kept in memory.", float64(is.Book.Debits))
		age := 0.0
		if !is.Book.OpenedAt.IsZero() {
			age = max(time.Since(is.Book.OpenedAt).Seconds(), 0)
		}
		gauge("humanqa_ledger_book_oldest_seconds", "How long ago the oldest open book was opened by a close.", age)
	}
}

// countAIFailures counts the tasks that a model did not do.
func countAIFailures(registry prometheus.Registerer) (failed func(task string)) {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "humanqa_ai_failures_total", Help: "Tasks that the model did not do, so that the rules did.",
	}, []string{"task"})
	registry.MustRegister(failures)
	for _, task := range ai.Tasks() {
		failures.WithLabelValues(task)
	}
	return func(task string) { failures.WithLabelValues(task).Inc() }
}
