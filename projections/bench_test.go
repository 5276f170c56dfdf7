package projections_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections"
)

// BenchmarkSubmissions is what the projections cost a submission: a debit and a
// job each, through all of them at once.
func BenchmarkSubmissions(b *testing.B) {
	db := pgtest.New(b)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	m := logtest.New()
	s := consumer.New(db, m, quiet, projections.All()...)
	for i := range 64 {
		m.Record(domain.CreditsStream(fmt.Sprint("acc", i)), &credits.Granted{LotID: "l", Amount: 1 << 40})
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(b.Context()) }()
	must.NoError(b, s.WaitFor(b.Context(), m.Head()))
	b.ResetTimer()
	for i := range b.N {
		accountID, jobID := fmt.Sprint("acc", i%64), fmt.Sprint("job", i)
		m.Record(domain.CreditsStream(accountID), &credits.Debited{
			JobID: jobID, Amount: 5, Parts: []credits.Part{{LotID: "l", Amount: 5}},
		})
		m.Record(domain.JobStream(jobID), modeltest.Created(accountID))
	}
	must.NoError(b, s.WaitFor(b.Context(), m.Head()))
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submissions/s")
}
