package listen_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"humanqa/internal/hqa/listen"
	"humanqa/internal/signature"
	"humanqa/internal/testing/must"
)

func TestListenTellsAndVerifiesWhatArrives(t *testing.T) {
	t.Parallel()
	secretFile := filepath.Join(t.TempDir(), "secret")
	told := make(chan any, 10)
	l := listen.Listener{
		Flags: listen.Flags{Addr: "127.0.0.1:0"}, Dir: t.TempDir(), SecretFile: secretFile,
		Tell:     func(object any, _ string) error { told <- object; return nil },
		Complain: func(line string) { t.Error(line) },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()

	at, _ := (<-told).(listen.Place)
	pem, err := os.ReadFile(at.CAFile)
	must.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	post := func(secret string) int {
		t.Helper()
		body := []byte(`{"event":"job.created"}`)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.URL, bytes.NewReader(body))
		must.NoError(t, err)
		req.Header.Set(signature.EventHeader, "job.created")
		req.Header.Set(signature.DeliveryHeader, "d-1")
		req.Header.Set(signature.SignatureHeader, signature.Of([]byte(secret), body))
		res, err := client.Do(req)
		must.NoError(t, err)
		must.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	want := listen.Heard{Type: "delivery", Event: "job.created", DeliveryID: "d-1", Answered: http.StatusNoContent, Body: json.RawMessage(`{"event":"job.created"}`)}
	expect := func(status, wantStatus int, want listen.Heard) {
		t.Helper()
		if got := <-told; status != wantStatus || !reflect.DeepEqual(got, want) {
			t.Errorf("%d %+v, want %d %+v", status, got, wantStatus, want)
		}
	}
	expect(post("right"), http.StatusNoContent, want) // the secret is not known yet

	must.NoError(t, os.WriteFile(secretFile, []byte("right\n"), 0o600))
	verified := want
	verified.Verified = true
	expect(post("right"), http.StatusNoContent, verified)
	refused := want
	refused.Problem, refused.Answered = signature.ErrMismatch.Error(), 0
	expect(post("wrong"), http.StatusUnauthorized, refused)

	stop()
	must.NoError(t, <-ended)
}
