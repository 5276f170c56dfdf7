package webhooks

import (
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestABurstToAHostSharesOneConnection(t *testing.T) {
	t.Parallel()
	var handshakes atomic.Int64
	server, _, send := toEndpoint(t, 10*time.Second, func(http.ResponseWriter, *http.Request) {})
	server.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { // its listener shares it
		handshakes.Add(1)
		return nil, nil
	}
	var sent sync.WaitGroup
	for range 100 {
		sent.Go(func() {
			if a := send("/"); a.err != "" {
				t.Errorf("%+v", a)
			}
		})
	}
	sent.Wait()
	if n := handshakes.Load(); n != 1 {
		t.Errorf("100 requests at once took %d handshakes", n)
	}
}

// A host that leaves its scout without a connection is tried by the others, and by the
// next one that comes after it has given up.
func TestAScoutThatFindsNobodyHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	var s scouts
	first := s.open(t.Context(), "deaf")
	began := time.Now()
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() { s.open(t.Context(), "deaf").end() })
	}
	others.Wait()
	if took := time.Since(began); took < scoutTime || first.own == nil {
		t.Errorf("others went %s behind the scout", took)
	}
	if w := s.open(t.Context(), "another"); w.own == nil {
		t.Error("a host waits for another one's scout")
	}
	first.end()
	second, ahead := s.enter("deaf", time.Now())
	if second.own == nil || ahead != nil {
		t.Error("nobody scouts after the first one has ended")
	}
	waiting, ahead := s.enter("deaf", time.Now())
	if waiting.own != nil || ahead == nil {
		t.Error("a second one scouts beside the first")
	}
	second.connected()
	<-ahead
	for at, cold := range map[time.Duration]bool{0: false, warmTime / 2: false, idleTime: true} {
		w, _ := s.enter("deaf", time.Now().Add(at))
		if scouts := w.own != nil; scouts != cold {
			t.Errorf("%s after a connection was there, one scouts: %t", at, scouts)
		}
		w.end()
	}
}
