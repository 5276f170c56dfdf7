package send

import (
	"crypto/tls"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"humanqa/internal/testing/eventually"
)

func TestABurstToAHostSharesOneConnection(t *testing.T) {
	t.Parallel()
	var handshakes atomic.Int64
	server, s, send := toEndpoint(t, eventually.Patience, func(http.ResponseWriter, *http.Request) {})
	// A busy machine takes longer than dialPatience for one handshake.
	s.dials.patience = eventually.Patience
	server.TLS.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { // its listener shares it
		handshakes.Add(1)
		return nil, nil
	}
	var sent sync.WaitGroup
	for range 100 {
		sent.Go(func() {
			if a := send("/"); a.Err != "" {
				t.Errorf("%+v", a)
			}
		})
	}
	sent.Wait()
	if n := handshakes.Load(); n != 1 {
		t.Errorf("100 requests at once took %d handshakes", n)
	}
}

// Where the first request gets no connection, the others dial after a while, and so does
// the next one after the first has given up.
func TestAFirstRequestWithoutAConnectionDelaysNoOther(t *testing.T) {
	t.Parallel()
	s := dials{patience: dialPatience}
	first := s.awaitDial(t.Context(), "deaf")
	began := time.Now()
	var others sync.WaitGroup
	for range 3 {
		others.Go(func() { s.awaitDial(t.Context(), "deaf").endDial() })
	}
	others.Wait()
	if took := time.Since(began); took < dialPatience || first.ownsDial == nil {
		t.Errorf("others went %s behind the scout", took)
	}
	if w := s.awaitDial(t.Context(), "another"); w.ownsDial == nil {
		t.Error("a host waits for another one's scout")
	}
	first.endDial()
	second, ahead := s.joinDial("deaf", time.Now())
	if second.ownsDial == nil || ahead != nil {
		t.Error("nobody scouts after the first one has ended")
	}
	waiting, ahead := s.joinDial("deaf", time.Now())
	if waiting.ownsDial != nil || ahead == nil {
		t.Error("a second one scouts beside the first")
	}
	second.markConnected()
	<-ahead
	for at, cold := range map[time.Duration]bool{0: false, warmTime / 2: false, idleTime: true} {
		w, _ := s.joinDial("deaf", time.Now().Add(at))
		if scouts := w.ownsDial != nil; scouts != cold {
			t.Errorf("%s after a connection was there, one scouts: %t", at, scouts)
		}
		w.endDial()
	}
}
