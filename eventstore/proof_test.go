package eventstore

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/origin"
	"humanqa/eventstore/mac"
	"humanqa/internal/testing/must"
)

// stored reads the whole log as it is.
func stored(t *testing.T, c *Client) []RawEvent {
	t.Helper()
	events, _, _, err := c.ReadAllRaw(t.Context(), domain.Position{}, true, 100)
	must.NoError(t, err)
	return events
}

// newMACsUnder are two keys, one of them for new MACs.
func newMACsUnder(primary uint32) mac.Keys {
	return func(uint32) (uint32, map[uint32][]byte) {
		return primary, map[uint32][]byte{7: []byte("seven"), 8: []byte("eight")}
	}
}

func TestAnEventsMACBindsAllThatIsWrittenAndStandsInACopy(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	grow(t, c, "job-before", 0, 1)
	c.Authenticate(newMACsUnder(7))
	grow(t, c, "job-1", 0, 2)
	large := newEvent(&job.Completed{Summary: strings.Repeat("x", maxWhole)}) // in parts
	_, err := c.Append(t.Context(), "job-1", 1, []domain.NewEvent{note("with it"), large})
	must.NoError(t, err)
	c.Authenticate(newMACsUnder(8)) // a keyset that was rotated
	grow(t, c, "job-1", 4, 1)

	_, copied := setup(t)
	copied.Authenticate(newMACsUnder(7))
	_, err = Copy(t.Context(), c, copied, func(int64) {})
	must.NoError(t, err)
	for name, log := range map[string]*Client{"log": c, "copy": copied} {
		events := stored(t, log)
		if len(events) != 8 {
			t.Fatalf("the %s has %d events", name, len(events))
		}
		for i, e := range events {
			want := mac.Genuine
			if i == 0 {
				want = mac.None
			}
			if got := log.Authentic(e); got != want {
				t.Errorf("%s: event %d of %s is %d, want %d", name, e.Revision, e.Stream, got, want)
			}
			if _, err := e.Decode(); err != nil {
				t.Error(err)
			}
		}
	}

	for name, change := range map[string]func(*RawEvent){
		"another stream":   func(e *RawEvent) { e.Stream = "job-2" },
		"another revision": func(e *RawEvent) { e.Revision++ },
		"another type":     func(e *RawEvent) { e.Type = "job.voided" },
		"another id":       func(e *RawEvent) { e.ID = uuid.New() },
		"octets":           func(e *RawEvent) { e.Binary = true },
		"other data":       func(e *RawEvent) { e.Data = []byte(`{"itemId":"other"}`) },
		"other metadata": func(e *RawEvent) {
			e.Meta = bytes.Replace(e.Meta, []byte(`"actor":"operator"`), []byte(`"actor":"somebody"`), 1)
		},
		"a key that is not ours": func(e *RawEvent) {
			e.Meta = bytes.Replace(e.Meta, []byte(`"mac":"00000007.`), []byte(`"mac":"00000009.`), 1)
		},
		"another of our keys": func(e *RawEvent) {
			e.Meta = bytes.Replace(e.Meta, []byte(`"mac":"00000007.`), []byte(`"mac":"00000008.`), 1)
		},
	} {
		e, want := stored(t, c)[1], mac.Wrong
		if name == "a key that is not ours" {
			want = mac.Strange
		}
		if change(&e); c.Authentic(e) != want {
			t.Errorf("%s: %d", name, c.Authentic(e))
		}
	}
	e := stored(t, c)[1]
	for n := range e.Meta {
		if e.Meta = e.Meta[:len(e.Meta)-1]; c.Authentic(e) == mac.Genuine {
			t.Errorf("%d bytes are cut off and it holds", n+1)
		}
	}
}

// A forged close at the end of a ledger would be the state of the account. Once it is
// disowned, the events before it are.
func TestADisownedEventCountsForNothing(t *testing.T) {
	t.Parallel()
	n, c := setup(t)
	c.Authenticate(newMACsUnder(7))
	say := func(revision domain.ExpectedRevision, e domain.Event) {
		t.Helper()
		_, err := c.Append(t.Context(), origin.Stream, revision, []domain.NewEvent{newEvent(e)})
		must.NoError(t, err)
	}
	say(domain.NoStream, &origin.Named{LogID: "log", AuditKey: "key"})
	ledger := domain.CreditsStream("a")
	grow(t, c, ledger, 0, 2)
	forger := connect(t, n.socket, patientLimits) // it has no key
	_, err := forger.Append(t.Context(), ledger, 1, []domain.NewEvent{newEvent(&credits.Closed{})})
	must.NoError(t, err)
	closed := (*credits.Closed)(nil).EventType()
	if _, _, err := c.LoadTail(t.Context(), ledger, closed, 100); !errors.Is(err, domain.ErrForged) {
		t.Errorf("a forged close: %v", err)
	}
	all := stored(t, c)
	forged := all[len(all)-1]
	for revision, said := range []*origin.AuditJudged{
		{EventID: forged.ID.String(), Sum: "another event's", Disowned: true},
		{EventID: forged.ID.String(), Sum: forged.Sum(), Disowned: true},
		{EventID: forged.ID.String(), Sum: forged.Sum()}, // by another operator at the same time
	} {
		say(domain.ExpectedRevision(revision), said)
		reader := connect(t, n.socket, patientLimits) // one that starts behind it
		reader.Authenticate(c.macs)
		b, err := reader.Bound(t.Context())
		must.NoError(t, err)
		events, ok, err := reader.LoadTail(t.Context(), ledger, closed, 100)
		if revision == 0 {
			if !errors.Is(err, domain.ErrForged) || reader.Unproved(forged, b) == "" || b.Disowns(forged) {
				t.Errorf("another event was disowned: %v", err)
			}
			continue
		}
		must.NoError(t, err)
		if !ok || len(events) != 3 || events[1].Event == nil || !events[2].Disowned || events[2].Event != nil || events[2].Revision != 2 {
			t.Errorf("the ledger is %v %+v", ok, events)
		}
		if reader.Unproved(forged, b) != "" || !b.Disowns(forged) || b.At != all[0].Position {
			t.Errorf("the log is proved behind %s", b.At)
		}
	}
}
