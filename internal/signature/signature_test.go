package signature_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"humanqa/internal/signature"
)

// The value was computed with another program:
// printf '{"a":1}' | openssl dgst -sha256 -hmac secret
func TestSignatureIsHexHMACOfTheBody(t *testing.T) {
	got := signature.Of([]byte("secret"), []byte(`{"a":1}`))
	if want := "aa9e2e3575f5d7098b6caccd790888c36d5fdb63342a73bada2d6a51747a8494"; got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	secret, body := []byte("secret"), []byte(`{"a":1}`)
	plain := func(change func(http.Header)) http.Header {
		h := http.Header{}
		h.Set("X-Service-Signature", signature.Of(secret, body))
		change(h)
		return h
	}
	// The example of the Standard Webhooks specification.
	known := []byte("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	payload := []byte(`{"test": 2432232314}`)
	sent := time.Unix(1614265330, 0)
	standard := func(change func(http.Header)) http.Header {
		h := http.Header{}
		h.Set("X-Service-Signature", signature.Of(known, payload))
		h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		h.Set("webhook-timestamp", "1614265330")
		h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
		change(h)
		return h
	}
	same := func(http.Header) {}
	tests := []struct {
		name   string
		secret []byte
		header http.Header
		body   []byte
		now    time.Time
		ok     bool
	}{
		{"the right signature", secret, plain(same), body, sent, true},
		{"another secret", []byte("secreT"), plain(same), body, sent, false},
		{"another body", secret, plain(same), []byte(`{"a": 1}`), sent, false},
		{"no signature", secret, http.Header{}, body, sent, false},
		{"upper case", secret, plain(func(h http.Header) {
			h.Set("X-Service-Signature", strings.ToUpper(h.Get("X-Service-Signature")))
		}), body, sent, false},
		{"the standard's example", known, standard(same), payload, sent, true},
		{"only the standard signature, as a new secret's is while a rotation overlaps", known, standard(func(h http.Header) {
			h.Set("X-Service-Signature", signature.Of(secret, payload))
		}), payload, sent, true},
		{"one of two standard signatures", known, standard(func(h http.Header) {
			h.Set("webhook-signature", "v1,AAAA "+h.Get("webhook-signature"))
		}), payload, sent, true},
		{"a wrong standard signature", known, standard(func(h http.Header) { h.Set("webhook-signature", "v1,AAAA") }), payload, sent, false},
		{"another id", known, standard(func(h http.Header) { h.Set("webhook-id", "msg_x") }), payload, sent, false},
		{"played again later", known, standard(same), payload, sent.Add(6 * time.Minute), false},
		{"from the future", known, standard(same), payload, sent.Add(-6 * time.Minute), false},
		{"a timestamp that is none", known, standard(func(h http.Header) { h.Set("webhook-timestamp", "now") }), payload, sent, false},
		{"the timestamp left out", known, standard(func(h http.Header) { h.Del("webhook-timestamp") }), payload, sent, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := signature.Verify(tt.secret, tt.header, tt.body, tt.now)
			if (err == nil) != tt.ok || err != nil && !errors.Is(err, signature.ErrMismatch) {
				t.Errorf("Verify gives %v, want ok=%v", err, tt.ok)
			}
		})
	}
}
