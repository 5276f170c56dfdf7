package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// stalled begins to send the largest body, and stops where it needs a place.
func (s *service) stalled(addr net.Addr, key, path string) {
	s.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(s.t.Context(), addr.Network(), addr.String())
	must.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, halfSent(key, path))
	must.NoError(s.t, err)
}

func halfSent(key, path string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
		path, key, wire.MaxBody, make([]byte, wire.SmallBody+1))
}

func TestSlowBodiesKeepNobodyFromTheirOwn(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(0)
	srv := s.onlineWith(time.Hour) // however slow this machine is, they are slower
	addr := srv.Listener.Addr()
	var slow []string
	for range 6 {
		id, other := s.account(0)
		s.stalled(addr, other, "/v1/jobs")
		slow = append(slow, id)
	}
	checker := s.checker()
	s.stalled(addr, checker, "/v1/checker/jobs/1/evidence")
	eventually.True(t, "the slow bodies have come", func() bool { return len(s.Spool.Disk.Holders()) == len(slow)+1 })
	for _, size := range []int{3 << 20, 49 << 20} {
		status, _ := post(t, srv, key, strings.NewReader(strings.Repeat("x", size)), int64(size))
		equal(t, status, http.StatusBadRequest) // it was read, and is no JSON; without a place it is a 503
	}
	equal(t, s.Spool.Parse.Holders(), []string{})
	equal(t, len(s.Spool.Disk.Holders()), len(slow)+1) // each still has what it sent
	for _, id := range slow {
		must.NoError(t, s.Spool.Disk.Acquire(t.Context(), id, wire.SpoolShare-3*wire.SpoolStep))
		if s.Spool.Disk.TryAcquire(id, 3*wire.SpoolStep) == nil {
			t.Errorf("%s has more than its share", id)
		}
		s.Spool.Disk.Release(id, wire.SpoolShare-3*wire.SpoolStep)
	}
}

func TestASpooledBodyIsTheBodyThatCame(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	s.Spool.Dir = t.TempDir()
	_, key := s.account(100)
	padding := strings.Repeat(" ", 3<<20)
	one := `{"jobs":[` + aJob + `],` + padding + `"of":"me"}`
	for range 2 { // whose digest is the same, too
		s.call(key, "POST", "/v1/jobs", aJob[:1]+padding+aJob[1:], "Idempotency-Key", "k").want(http.StatusCreated)
	}
	equal(t, s.count("job.created"), 1)
	s.call(key, "POST", "/v1/jobs", one).refused(http.StatusBadRequest, domain.CodeInvalidRequest) // a batch is no job
	left, err := os.ReadDir(s.Spool.Dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
	equal(t, s.Spool.Disk.Holders(), []string{})

	s.Spool.Dir = filepath.Join(s.Spool.Dir, "nowhere")
	s.call(key, "POST", "/v1/jobs", one).refused(http.StatusServiceUnavailable, domain.CodeUnavailable) // a disk that takes nothing
	equal(t, s.Spool.Disk.Holders(), []string{})
}

func TestAParsedBodyLeavesTheMemoryWhileItsCommandRuns(t *testing.T) {
	t.Parallel()
	s := own(t)
	_, key := s.account(100)
	during := make(chan []string, 1)
	s.log.Before(func(string) {
		select {
		case during <- s.Spool.Parse.Holders():
		default:
		}
	})
	padding := strings.Repeat(" ", 2<<20)
	s.call(key, "POST", "/v1/jobs", aJob+padding).want(http.StatusCreated)
	equal(t, <-during, []string{})
}

func TestABodyThatArrivesTooSlowlyIsCutOff(t *testing.T) {
	t.Parallel()
	s := shared(t).node(nil)
	_, key := s.account(0)
	addr := s.onlineWith(50 * time.Millisecond).Listener.Addr()
	for name, request := range map[string]string{
		"large": halfSent(key, "/v1/jobs"),
		"small": "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\nContent-Length: 200\r\n\r\n{",
		"small, chunked": "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key +
			"\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
	} {
		status, _, body := raw(t, addr, request)
		if status != http.StatusBadRequest || !strings.Contains(body, `"details":[{"path":"body","message":"arrived too slowly"}]`) {
			t.Errorf("%s: got %d %s", name, status, body)
		}
	}
	// A stranger's is not read, but its connection ends as soon.
	status, _, _ := raw(t, addr, "POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n{")
	equal(t, status, http.StatusUnauthorized)
	equal(t, s.Spool.Disk.Holders(), []string{})
}

func TestABodyHasToKeepTheLeastRate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server, client time.Duration // that each read takes, before and while it waits
		want           []float64     // seconds that each read has
	}{
		"at once":                {0, 0, []float64{10, 10, 12, 18, 24}},
		"a client that is slow":  {0, 4 * time.Second, []float64{10, 6, 4, 6, 8}},
		"a server that is slow":  {15 * time.Second, 0, []float64{10, 10, 12, 18, 24}},
		"the server's own limit": {20 * time.Second, 0, []float64{10, 10, 12, 18, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var due time.Time
			p := &paced{
				ReadCloser: io.NopCloser(io.LimitReader(slowly{c.client}, 30*wire.MinRate)), grace: wire.BodyGrace,
				latest: time.Now().Add(100 * time.Second), due: func(at time.Time) error { due = at; return nil },
			}
			var seconds []float64
			for chunk := make([]byte, 6*wire.MinRate); ; {
				time.Sleep(c.server)
				asked := time.Now()
				if _, err := p.Read(chunk); err != nil {
					break
				}
				seconds = append(seconds, due.Sub(asked).Seconds())
			}
			if !slices.Equal(seconds, c.want) {
				t.Errorf("%s: the reads have %v seconds, want %v", name, seconds, c.want)
			}
			equal(t, due, time.Time{}) // what is there has no due time any more
		})
	}
}

// slowly is bytes that each take a while.
type slowly struct{ each time.Duration }

func (s slowly) Read(b []byte) (int, error) {
	time.Sleep(s.each)
	return len(b), nil
}
