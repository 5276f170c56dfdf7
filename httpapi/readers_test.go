package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/command"
	"humanqa/domain/origin"
	"humanqa/httpapi/readers"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/projections/events"
)

// named lists the account's readers once their places are written.
func (s *service) named(key string) map[string]map[string]any {
	s.t.Helper()
	must.NoError(s.t, s.clients.Readers.Flush(s.t.Context()))
	found := map[string]map[string]any{}
	list, _ := s.call(key, "GET", "/v1/events/readers", "").want(http.StatusOK)["readers"].([]any)
	for _, one := range list {
		reader, _ := one.(map[string]any)
		found[fmt.Sprint(reader["name"])] = reader
	}
	return found
}

func TestANamedReaderShowsWithItsLag(t *testing.T) {
	t.Parallel()
	s := own(t)
	accountID, key := s.account(500)
	s.submitted(key)
	s.submitted(key)
	page := s.call(key, "GET", "/v1/events?limit=1&reader=warehouse", "").want(http.StatusOK)
	first, _ := page["next"].(string)
	reader := s.named(key)["warehouse"] // it has confirmed nothing
	with(t, reader, map[string]any{
		"state": "current", "cursor": nil, "eventsBehind": 2.0, "more": false, "refused": nil, "projectId": nil,
	})
	equal(t, reader["types"], any([]any{}))
	s.call(key, "GET", "/v1/events?reader=warehouse&after="+first, "").want(http.StatusOK)
	with(t, s.named(key)["warehouse"], map[string]any{"cursor": first, "eventsBehind": 1.0})
	end, _ := s.call(key, "GET", "/v1/events", "").want(http.StatusOK)["next"].(string)
	s.call(key, "GET", "/v1/events?reader=warehouse&after="+end, "").want(http.StatusOK)
	with(t, s.named(key)["warehouse"], map[string]any{"cursor": end, "eventsBehind": 0.0, "lagSeconds": 0.0})

	// A reader of a kind that never happens is at the end, too.
	s.call(key, "GET", "/v1/events?reader=rare&types=job.failed", "").want(http.StatusOK)
	rare := with(t, s.named(key)["rare"], map[string]any{"cursor": end, "eventsBehind": 0.0})
	equal(t, rare["types"], any([]any{"job.failed"}))
	s.submitted(key)
	with(t, s.named(key)["rare"], map[string]any{"eventsBehind": 0.0})
	with(t, s.named(key)["warehouse"], map[string]any{"eventsBehind": 1.0})

	// A reader with a key of one project is apart, and sees only its own.
	projectID := s.project(key, `{"name":"Shop"}`)
	bound := s.key(accountID, command.IssueKey{Scope: account.ScopeRead, ProjectID: projectID})
	s.call(bound, "GET", "/v1/events?reader=warehouse", "").want(http.StatusOK)
	mine := s.named(bound)
	if len(mine) != 1 || mine["warehouse"]["projectId"] != projectID {
		t.Errorf("the bound key sees %v", mine)
	}
	_, stranger := s.account(0)
	if others := s.named(stranger); len(others) != 0 {
		t.Errorf("another account sees %v", others)
	}
	s.call(stranger, "POST", "/v1/events/readers/warehouse/forget", "").refused(http.StatusNotFound, domain.CodeNotFound)
	s.call(bound, "POST", "/v1/events/readers/warehouse/forget", "").refused(http.StatusForbidden, domain.CodeForbidden)

	s.call(key, "POST", "/v1/events/readers/rare/forget", "").want(http.StatusOK)
	if _, there := s.named(key)["rare"]; there {
		t.Error("a forgotten reader is listed")
	}
	s.call(key, "GET", "/v1/events?reader=rare", "").want(http.StatusOK)
	if _, there := s.named(key)["rare"]; !there {
		t.Error("a reader that reads on is not listed again")
	}
	gone, err := readers.Erase(t.Context(), s.db, accountID)
	must.NoError(t, err)
	equal(t, gone, 3)
}

func TestTheNamesOfReadersAreBounded(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(0)
	for _, name := range []string{"-", "a%20b", "a%2Fb", "%00", "%3Cb%3E", "%C3%A9", ".hidden", "a%0A"} {
		equal(t, s.call(key, "GET", "/v1/events?reader="+name, "").paths(), []string{"reader"})
	}
	asked := make(chan int, 2*readers.PerAccount)
	for n := range 2 * readers.PerAccount { // at once, over two nodes
		api := []*API{s.API, New(s.deps)}[n%2]
		go func() {
			asked <- s.to(api).call(key, "GET", fmt.Sprintf("/v1/events?reader=r%d", n), "").Code
		}()
	}
	codes := map[int]int{}
	for range 2 * readers.PerAccount {
		codes[<-asked]++
	}
	equal(t, codes, map[int]int{http.StatusOK: readers.PerAccount, http.StatusConflict: readers.PerAccount})
	equal(t, len(s.named(key)), readers.PerAccount)
	s.call(key, "GET", "/v1/events?reader=one-more", "").refused(http.StatusConflict, domain.CodeConflict)
	s.call(key, "GET", "/v1/events", "").want(http.StatusOK)
}

// to sends requests to another node.
func (s *service) to(api *API) *service {
	other := *s
	other.API = api
	return &other
}

func TestAReaderThatStoppedOrIsRefusedIsToldApart(t *testing.T) {
	t.Parallel()
	s := own(t)
	log := &lineage{}
	log.become(origin.Begin("the-log", "1/1"))
	s.onLog(log)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(s.clients.Readers)
	_, key := s.account(500)
	s.submitted(key)
	s.call(key, "GET", "/v1/events?reader=stopped", "").want(http.StatusOK)
	cursor := s.feed(key, "/v1/events", 1)[0]["cursor"].(string)
	s.call(key, "GET", "/v1/events?reader=strange&after="+cursor, "").want(http.StatusOK)
	other := events.Marked(cursor, origin.Begin("another", "1/1").Mark())
	s.call(key, "GET", "/v1/events?reader=strange&after="+other, "").refused(http.StatusConflict, domain.CodeAnotherLog)
	s.named(key)
	_, err := s.db.ExecContext(t.Context(), "UPDATE readmodel.account_events SET time = time - interval '2 hours'")
	must.NoError(t, err)
	list := s.named(key)
	with(t, list["stopped"], map[string]any{"state": "behind", "eventsBehind": 1.0})
	with(t, list["strange"], map[string]any{"state": "refused", "refused": "ANOTHER_LOG", "cursor": cursor})
	if lag, _ := list["stopped"]["lagSeconds"].(float64); lag < 7200 || lag > 7500 {
		t.Errorf("the lag is %v s", lag)
	}
	for state, want := range map[string]float64{"behind": 1, "refused": 1, "current": 0} {
		got := gauge(t, metrics, "humanqa_feed_readers", state)
		if got != want {
			t.Errorf("%v readers are %s, want %v", got, state, want)
		}
	}
	if lag := gauge(t, metrics, "humanqa_feed_reader_lag_seconds", ""); lag < 7200 {
		t.Errorf("the lag is %v s", lag)
	}

	// It continues where it was told to.
	s.call(key, "GET", "/v1/events?reader=strange&after="+cursor, "").want(http.StatusOK)
	with(t, s.named(key)["strange"], map[string]any{"state": "current", "refused": nil})
}

// gauge is one value of a metric, by the value of its only label, if it has one.
func gauge(t *testing.T, metrics *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := metrics.Gather()
	must.NoError(t, err)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			if len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == label {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s of %s", name, label)
	return 0
}

func TestAStreamWithANameShowsWhereItIs(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(500)
	srv := s.online()
	id := s.submitted(key)
	f := s.follow(srv.URL, key, "?reader=live", "").opened()
	got := f.next()
	eventually.Within(t, eventually.Patience, func() error {
		reader := s.named(key)["live"]
		if reader["cursor"] != got.id || reader["eventsBehind"] != 0.0 {
			return fmt.Errorf("the reader is %v, the job %s", reader, id)
		}
		return nil
	})
	f.close()
}

// What another node wrote later is not undone by a node that is late, and readers that do
// not move are hardly ever written.
func TestNotesAreWrittenSeldomAndNeverUndone(t *testing.T) {
	t.Parallel()
	s := shared(t)
	accountID, _ := s.account(0)
	now := time.Now().UTC().Truncate(time.Millisecond)
	clock := func() time.Time { return now }
	late, early := readers.New(s.db, clock, s.deps.Log), readers.New(s.db, clock, s.deps.Log)
	id := readers.ID{AccountID: accountID, Name: "r"}
	at := func(want string) {
		t.Helper()
		list, err := late.Of(t.Context(), accountID, "")
		must.NoError(t, err)
		if len(list) != 1 || list[0].Cursor != want {
			t.Errorf("the readers are %+v, want one at %s", list, want)
		}
	}
	must.NoError(t, late.Admit(t.Context(), id))
	must.NoError(t, early.Admit(t.Context(), id))
	late.Note(readers.Note{ID: id, Cursor: "5-5"})
	now = now.Add(time.Second)
	early.Note(readers.Note{ID: id, Cursor: "9-9", Types: []string{"job.created"}})
	must.NoError(t, early.Flush(t.Context()))
	at("9-9")
	must.NoError(t, late.Flush(t.Context()))
	at("9-9")
	list, err := early.Of(t.Context(), accountID, "")
	must.NoError(t, err)
	seen := list[0].LastSeenAt
	now = now.Add(time.Second)
	early.Note(readers.Note{ID: id, Cursor: "9-9", Types: []string{"job.created"}})
	must.NoError(t, early.Flush(t.Context()))
	list, err = early.Of(t.Context(), accountID, "")
	must.NoError(t, err)
	if !list[0].LastSeenAt.Equal(seen) || !slices.Equal(list[0].Types, []string{"job.created"}) {
		t.Errorf("a reader that did not move was written: %+v", list[0])
	}
	now = now.Add(time.Minute)
	early.Note(readers.Note{ID: id, Cursor: "9-9", Types: []string{"job.created"}})
	must.NoError(t, early.Flush(t.Context()))
	if list, err = early.Of(t.Context(), accountID, ""); err != nil || !list[0].LastSeenAt.After(seen) {
		t.Errorf("a minute later it was last seen at %s, %v", list[0].LastSeenAt, err)
	}
}
