package service

import (
	"context"
	"errors"
	"io"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/httpapi/evidence"
	"humanqa/internal/datadir"
	"humanqa/internal/metrics"
	"humanqa/internal/pgclock"
)

// resourceMetrics are the resources of the machine that this process has.
func resourceMetrics(dataDir string, clock *pgclock.Clock) metrics.Func {
	return func(gauge metrics.Gauge) {
		gauge("humanqa_clock_ahead_seconds", "How far Postgres' clock is before this machine's; below 0 it is behind.",
			clock.Ahead().Seconds())
		for name, place := range datadir.Places(dataDir) {
			if free, total, err := datadir.Room(place); err == nil { // else there is no such number
				gauge("humanqa_disk_free_bytes", "What the service may still write to the disk of the data directory, and of the embedded "+
					"Postgres where that lies elsewhere.", float64(free), "place", name)
				gauge("humanqa_disk_size_bytes", "The size of that disk.", float64(total), "place", name)
			}
		}
	}
}

// countedFiles counts the failures of the store of evidence. A client that breaks its own
// upload or download off is no failure of the store.
type countedFiles struct {
	evidence.Files
	failures *prometheus.CounterVec
}

func countFiles(files evidence.Files, registry prometheus.Registerer) countedFiles {
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "humanqa_evidence_failures_total", Help: "Files of evidence that could not be written, read or deleted.",
	}, []string{"operation"})
	registry.MustRegister(failures)
	for _, operation := range []string{"write", "read", "delete"} {
		failures.WithLabelValues(operation)
	}
	return countedFiles{files, failures}
}

func (f countedFiles) count(operation string, err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		f.failures.WithLabelValues(operation).Inc()
	}
}

func (f countedFiles) Write(ctx context.Context, key, contentType string, about map[string]string, content io.Reader) error {
	came := &sentContent{Reader: content}
	err := f.Files.Write(ctx, key, contentType, about, came)
	if came.err == nil {
		f.count("write", err)
	}
	return err
}

func (f countedFiles) Read(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	content, err := f.Files.Read(ctx, key, offset, length)
	f.count("read", err)
	return content, err
}

func (f countedFiles) Delete(ctx context.Context, key string) error {
	err := f.Files.Delete(ctx, key)
	f.count("delete", err)
	return err
}

// sentContent notes that the client's content broke off.
type sentContent struct {
	io.Reader
	err error
}

func (c *sentContent) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}
