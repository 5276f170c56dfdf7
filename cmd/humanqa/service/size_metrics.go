package service

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain/command"
	"humanqa/internal/ai"
)

var (
	longestStreamDesc = prometheus.NewDesc("humanqa_stream_longest_events",
		"The longest stream that this process has run a command on.", []string{"category"}, nil)
	bookEventsDesc = prometheus.NewDesc("humanqa_ledger_book_events",
		"The most events since a ledger's newest close.", nil, nil)
	bookDebitsDesc = prometheus.NewDesc("humanqa_ledger_book_debits",
		"The most debits of a ledger that are kept in memory.", nil, nil)
	bookAgeDesc = prometheus.NewDesc("humanqa_ledger_book_oldest_seconds",
		"How long ago the oldest open book was opened by a close.", nil, nil)
)

// sizeMetrics are the sizes that grow with the log.
type sizeMetrics struct{ commands *command.Service }

func (sizeMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{longestStreamDesc, bookEventsDesc, bookDebitsDesc, bookAgeDesc} {
		to <- d
	}
}

func (g sizeMetrics) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	is := g.commands.Growth()
	for category, events := range is.Streams {
		gauge(longestStreamDesc, float64(events), category)
	}
	gauge(bookEventsDesc, float64(is.Book.Events))
	gauge(bookDebitsDesc, float64(is.Book.Debits))
	age := 0.0
	if !is.Book.OpenedAt.IsZero() {
		age = max(time.Since(is.Book.OpenedAt).Seconds(), 0)
	}
	gauge(bookAgeDesc, age)
}

// countAIFailures counts the tasks that a model did not do.
func countAIFailures(metrics prometheus.Registerer) (failed func(task string)) {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "humanqa_ai_failures_total", Help: "Tasks that the model did not do, so that the rules did.",
	}, []string{"task"})
	metrics.MustRegister(failures)
	for _, task := range ai.Tasks() {
		failures.WithLabelValues(task)
	}
	return func(task string) { failures.WithLabelValues(task).Inc() }
}
