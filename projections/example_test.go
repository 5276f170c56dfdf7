package projections_test

import (
	"context"
	"fmt"
	"io"

	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/eventstore/consumer"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/modeltest"
	"humanqa/internal/testing/pgtest"
	"humanqa/projections"
	"humanqa/projections/jobs"
)

// A supervisor turns the log into rows; whoever wrote waits for the position of
// what they wrote, and reads it.
func Example() {
	db, remove := pgtest.Example() // with the schema
	defer remove()
	log := logtest.New() // a Feed of the real log
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)

	s := consumer.New(db, log, quiet, projections.All()...)
	ctx, cancel := context.WithCancel(context.Background())
	if err := s.Prepare(ctx); err != nil {
		fmt.Println(err)
	}
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()

	written := log.Record(domain.JobStream("j1"), modeltest.Created("acc"), modeltest.Claimed("ann"))
	if err := s.WaitFor(ctx, written); err != nil {
		fmt.Println(err)
	}
	reads := projections.NewReads(db)
	page, total, err := reads.Jobs.List(ctx, "acc", jobs.Filter{Limit: 10})
	fmt.Println(total, page[0].ID, page[0].Status, err)

	cancel()
	fmt.Println(<-ended)
	// Output:
	// 1 j1 claimed <nil>
	// <nil>
}
