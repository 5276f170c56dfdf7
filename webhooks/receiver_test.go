package webhooks_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"humanqa/internal/receiver"
	"humanqa/internal/testing/must"
)

// receiver starts one; what arrives comes out of the channel.
func (b *bundle) receiver(dir, secret string) (*receiver.Receiver, <-chan receiver.Delivery) {
	b.Helper()
	arrived := make(chan receiver.Delivery, 10)
	r, err := receiver.New(context.Background(), receiver.Config{
		Dir: dir, Secret: func() []byte { return []byte(secret) },
		Received: func(_ context.Context, got receiver.Delivery) int { arrived <- got; return http.StatusNoContent },
	})
	must.NoError(b, err)
	b.RunLoop(r.Run)
	return r, arrived
}

func TestAReceiverTakesAndVerifiesWhatIsDelivered(t *testing.T) {
	b := setup(t)
	dir := filepath.Join(t.TempDir(), "listen")
	r, arrived := b.receiver(dir, "secret of p1")
	b.Config.CAFile = r.CAFile()
	b.Project("p1", r.URL(), nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	got := <-arrived
	if !got.Verified || got.Err != nil || got.Event != "job.created" || got.DeliveryID == "" || !bytes.Contains(got.Body, []byte(`"j1"`)) {
		t.Errorf("it received %+v", got)
	}
	b.Settled("p1", map[string]int{"delivered": 1})

	info, err := os.Stat(filepath.Join(dir, "key.pem"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, %v", info.Mode(), err)
	}
}

func TestAReceiverRefusesAWrongSignature(t *testing.T) {
	b := setup(t)
	b.Config.Retries = []time.Duration{}
	r, arrived := b.receiver(t.TempDir(), "not the secret")
	b.Config.CAFile = r.CAFile()
	b.Project("p1", r.URL(), nil)
	b.Submit("p1", "j1")
	b.Subscribe()
	b.Dispatch()
	if got := <-arrived; got.Verified || got.Err == nil {
		t.Errorf("it received %+v", got)
	}
	b.Settled("p1", map[string]int{"failed": 1})
	if d := b.Deliveries("p1")[0]; d.LastStatus.Int64 != http.StatusUnauthorized {
		t.Errorf("it answered %d", d.LastStatus.Int64)
	}
}

func TestAReceiverKeepsItsCertificate(t *testing.T) {
	b := setup(t)
	dir := t.TempDir()
	first, _ := b.receiver(dir, "")
	ca, err := os.ReadFile(first.CAFile())
	must.NoError(t, err)
	second, arrived := b.receiver(dir, "")
	if again, err := os.ReadFile(second.CAFile()); err != nil || !bytes.Equal(ca, again) {
		t.Errorf("the second start made another authority (%v)", err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	post := func(body string) int {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, second.URL(), bytes.NewReader([]byte(body)))
		must.NoError(t, err)
		resp, err := client.Do(req)
		must.NoError(t, err)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if code := post("{}"); code != http.StatusNoContent {
		t.Errorf("without a secret it answers %d", code)
	}
	if got := <-arrived; got.Verified || got.Err != nil {
		t.Errorf("it received %+v", got)
	}
	if code := post("{"); code != http.StatusBadRequest {
		t.Errorf("it answers %d to a body that is no JSON", code)
	}
}

func TestAReceiverListensOnLoopbackOnly(t *testing.T) {
	_, err := receiver.New(context.Background(), receiver.Config{Dir: t.TempDir(), Addr: "0.0.0.0:0"})
	if err == nil {
		t.Error("it listens on every address")
	}
}
