package command_test

import (
	"context"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/logtest"
)

// slowLog tells after each append to the ledger, before its writer hears of it.
type slowLog struct {
	*logtest.Memory
	charged func()
}

func (l slowLog) Append(ctx context.Context, stream string, expected domain.ExpectedRevision, events []domain.NewEvent) (domain.AppendResult, error) {
	written, err := l.Memory.Append(ctx, stream, expected, events)
	if strings.HasPrefix(stream, domain.CreditsStreams) {
		l.charged()
	}
	return written, err
}

// Whoever reads in the log's order passes over a slot's end that comes before
// its session: one whose slots were given back must not begin.
func TestASessionIsNotBegunOnceTheChargeOfASlotWasGivenBack(t *testing.T) {
	t.Parallel()
	b := setup(t, 100)
	c := b.cause()
	jobOf := func(slot string) string { return domain.DeriveID(c.CommandID, slot).String() }
	given := false
	slow := newService(slowLog{b.log, func() {
		if given {
			return
		}
		given = true
		if _, err := newService(b.log).VoidJob(t.Context(), b.cause(), jobOf("slot 2")); err != nil {
			t.Error(err)
		}
	}})
	first := ""
	for range 2 { // and a repeat writes nothing more
		out, err := slow.CreateSession(t.Context(), c, aSession(3))
		if err != nil || first != "" && out.SessionID != first {
			t.Fatalf("got %+v, %v, first %q", out, err, first)
		}
		first = out.SessionID
		b.wantSession(t, out, "", "", "", "") // begun anew
		wantTypes(t, b.log, domain.SessionStream(domain.DeriveID(c.CommandID, "session").String()))
		for _, slot := range []string{"slot 1", "slot 2", "slot 3"} {
			wantTypes(t, b.log, domain.JobStream(jobOf(slot)), "job.voided")
		}
		b.wantUsed(t, 15)
		b.wantIDsApart(t)
	}
	slow.Drain()
}
