package admit

import (
	"context"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/sirupsen/logrus"

	"humanqa/httpapi/wire"
)

// A service whose read models stay behind refuses a read. One whose client hung up meanwhile
// is no outage.
func TestAReadThatWaitsInVainIsAnOutageUnlessItsClientIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		never := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		log := logrus.New()
		log.SetOutput(io.Discard)
		f := NewFreshness(never, never, never, log)
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		for what, read := range map[string]func(context.Context) error{"the read models": f.requireModels, "the feed": f.RequireFeed} {
			for ctx, want := range map[context.Context]int{t.Context(): http.StatusServiceUnavailable, gone: wire.StatusClientGone} {
				if _, status := wire.Classify(ctx, read(ctx)); status != want {
					t.Errorf("a wait for %s became %d, want %d", what, status, want)
				}
			}
		}
	})
}
