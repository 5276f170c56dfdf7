package send_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/internal/guard"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/hooktest"
	"humanqa/internal/testing/pgtest"
	"humanqa/webhooks/send"
)

// BenchmarkDeliveries sends everything that waits in the queue to HTTPS servers
// on loopback, which take a part of the same cores.
func BenchmarkDeliveries(b *testing.B) {
	for _, endpoints := range []int{1, 100} {
		b.Run(fmt.Sprintf("endpoints=%d", endpoints), func(b *testing.B) { benchmarkDeliveries(b, endpoints) })
	}
}

func benchmarkDeliveries(b *testing.B, endpoints int) {
	var got atomic.Int64
	done := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if got.Add(1) == int64(b.N) {
			close(done)
		}
	}))
	defer server.Close()
	caFile := filepath.Join(b.TempDir(), "ca.pem")
	hooktest.WriteCA(b, caFile, server.Certificate())
	dsn := pgtest.NewDSN(b)
	db := pgtest.NewDB(b, dsn)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	cfg := send.Config{
		DSN: dsn, Log: quiet, CAFile: caFile,
		Allow: guard.Allow{netip.MustParsePrefix("127.0.0.0/8")},
	}

	feed := hooktest.NewLog()
	for p := range endpoints {
		id := fmt.Sprint("p", p)
		feed.Add(domain.ProjectStream(id), hooktest.WithWebhook(id, server.URL, nil)...)
	}
	for n := range b.N {
		feed.Add(domain.JobStream(fmt.Sprint(n)), hooktest.Created(fmt.Sprint("p", n%endpoints)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- hooktest.Subscriber(db, feed).Run(ctx) }()
	eventually.True(b, "the subscriber has read the log", func() bool {
		return hooktest.SubscriberStatus(b, db).Position.Commit == feed.Head().Commit
	})
	b.ResetTimer()
	start := time.Now()
	go func() {
		ended <- send.NewDispatcher(db, hooktest.Vault{}, send.Report{}, cfg).Run(ctx)
	}()
	<-done
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "deliveries/s")
	b.StopTimer()
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}
