package signature_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"humanqa/internal/signature"
)

// The values are of other tools: openssl, and a JSON Web Signature written by hand.
func TestTheSignaturesOfPlatformsVerify(t *testing.T) {
	t.Parallel()
	secret, body, now := []byte("It's a Secret to Everybody"), []byte("Hello, World!"), time.Unix(1_700_000_000, 0)
	const netlify = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJuZXRsaWZ5Iiwic2hhMjU2IjoiZGZmZDYwMjFiYjJiZDViMGFmNjc2MjkwODA5ZWMzYTUzMTkxZGQ4MWM3ZjcwYTRiMjg2ODhhMzYyMTgyOTg2ZiJ9."
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	standard := func(at time.Time) http.Header {
		return headers("webhook-id", "msg_1", "webhook-timestamp", strconv.FormatInt(at.Unix(), 10), "webhook-signature", signature.Standard(secret, "msg_1", at, body))
	}
	for name, c := range map[string]struct {
		verify func(h http.Header, body []byte) error
		header http.Header
		broken []http.Header
	}{
		"GitHub": { // the example of GitHub's documentation
			func(h http.Header, b []byte) error { return signature.VerifyGitHub(secret, h, b) },
			headers("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
			[]http.Header{{}, headers("X-Hub-Signature-256", "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")},
		},
		"Vercel": {
			func(h http.Header, b []byte) error { return signature.VerifyVercel(secret, h, b) },
			headers("X-Vercel-Signature", "01dc10d0c83e72ed246219cdd91669667fe2ca59"),
			[]http.Header{{}, headers("X-Vercel-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59")},
		},
		"Netlify": {
			func(h http.Header, b []byte) error { return signature.VerifyNetlify(secret, h, b) },
			headers("X-Webhook-Signature", netlify+"8D6Y4RdEQjZvgZO5ZKf2i38FhV2uHFJLneBMNCK43bU"),
			[]http.Header{
				{}, headers("X-Webhook-Signature", "a.b"), headers("X-Webhook-Signature", netlify),
				// alg none, and another issuer, are signed by nobody
				headers("X-Webhook-Signature", "eyJhbGciOiJub25lIn0.eyJpc3MiOiJuZXRsaWZ5In0."),
			},
		},
		"GitLab": {
			func(h http.Header, _ []byte) error { return signature.VerifyGitLab(secret, h) },
			headers("X-Gitlab-Token", string(secret)),
			[]http.Header{{}, headers("X-Gitlab-Token", ""), headers("X-Gitlab-Token", string(secret)+" ")},
		},
		"Standard Webhooks": {
			func(h http.Header, b []byte) error { return signature.VerifyStandard(secret, h, b, now) },
			standard(now.Add(-4 * time.Minute)),
			[]http.Header{{}, standard(now.Add(-6 * time.Minute)), standard(now.Add(6 * time.Minute)), headers("X-Service-Signature", signature.Of(secret, body))},
		},
	} {
		if err := c.verify(c.header, body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// GitLab's token is no signature of a body.
		if err := c.verify(c.header, append([]byte(" "), body...)); name != "GitLab" && !errors.Is(err, signature.ErrMismatch) {
			t.Errorf("%s takes another body: %v", name, err)
		}
		for i, h := range c.broken {
			if err := c.verify(h, body); !errors.Is(err, signature.ErrMismatch) {
				t.Errorf("%s takes the broken signature %d: %v", name, i, err)
			}
		}
	}
}
