package httpapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
)

// holders are the callers that hold a place.
func (p *places) holders() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.AppendSeq([]string{}, maps.Keys(p.held))
}

// stalled begins to send the largest body, and stops where it needs a place.
func (s *service) stalled(addr net.Addr, key, path string) {
	s.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(s.t.Context(), addr.Network(), addr.String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, halfSent(key, path)); err != nil {
		s.t.Fatal(err)
	}
}

func halfSent(key, path string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		path, key, maxBody, make([]byte, smallBody+1))
}

// refusedPlace says that the owner gets no place at once.
func (p *places) refusedPlace(t *testing.T, owner string) {
	t.Helper()
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if leave, err := p.take(now, owner); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("%s: got %v", owner, err)
		if err == nil {
			leave()
		}
	}
}

func (p *places) taken(t *testing.T, owner string) (leave func()) {
	t.Helper()
	leave, err := p.take(t.Context(), owner)
	if err != nil {
		t.Fatalf("%s: %v", owner, err)
	}
	return leave
}

func TestOnlyAFewLargeBodiesAreHeldAtATimeAndOneOfEachCaller(t *testing.T) {
	t.Parallel()
	p := newPlaces(2)
	leaveA := p.taken(t, "a")
	p.refusedPlace(t, "a") // though there is one
	leaveB := p.taken(t, "b")
	p.refusedPlace(t, "c")

	waited := make(chan func(), 1)
	go func() {
		leave, _ := p.take(t.Context(), "a")
		waited <- leave
	}()
	leaveA()
	leaveA() // once only
	again := <-waited
	p.refusedPlace(t, "c")
	leaveB()
	leaveC := p.taken(t, "c")
	leaveC()
	again()
	equal(t, p.holders(), []string{})
	equal(t, p.free, 2)
}

func TestACallersSlowBodyLeavesThePlacesToTheOthers(t *testing.T) {
	t.Parallel()
	s := setup(t)
	greedy, slow := s.account(0)
	_, key := s.account(0)
	srv := s.online()
	addr := srv.Listener.Addr()
	s.stalled(addr, slow, "/v1/jobs")
	soon(t, "the slow body has come", func() bool { return slices.Equal(s.large.holders(), []string{greedy}) })
	s.large.refusedPlace(t, greedy) // whatever key of theirs the next comes with
	status, _ := post(t, srv, key, strings.NewReader(strings.Repeat("x", 3<<20)), 3<<20)
	equal(t, status, http.StatusBadRequest) // it was read, and is no JSON
	equal(t, s.large.holders(), []string{greedy})

	checker := s.checker()
	s.stalled(addr, checker, "/v1/checker/jobs/1/evidence")
	soon(t, "the upload has come", func() bool { return len(s.uploads.holders()) == 1 })
	equal(t, s.large.holders(), []string{greedy}) // whose places are not the uploads'
}

func TestABodyThatArrivesTooSlowlyIsCutOff(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.large.grace = 50 * time.Millisecond
	_, key := s.account(0)
	status, _, body := raw(t, s.online().Listener.Addr(), halfSent(key, "/v1/jobs"))
	if status != http.StatusBadRequest || !strings.Contains(body, `"details":[{"path":"body","message":"arrived too slowly"}]`) {
		t.Errorf("got %d %s", status, body)
	}
	equal(t, s.large.holders(), []string{})
}

func TestABodyHasToKeepTheLeastRate(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	var due time.Time
	p := &paced{
		Reader: io.LimitReader(zeros{}, 30*minRate), begun: begun, grace: placeGrace, latest: begun.Add(20 * time.Second),
		due: func(at time.Time) error { due = at; return nil },
	}
	var seconds []float64
	chunk := make([]byte, 6*minRate)
	for {
		_, err := p.Read(chunk)
		if err != nil {
			break
		}
		seconds = append(seconds, due.Sub(begun).Seconds())
	}
	equal(t, seconds, []float64{10, 10, 12, 18, 20})
	equal(t, due, time.Time{}) // what is there has no due time any more
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }
