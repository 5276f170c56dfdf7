package ai

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"humanqa/internal/guard"
)

const (
	// reviewTime bounds a whole review: the page and its links.
	reviewTime = 10 * time.Second
	// maxRedirects and maxPage bound the work that a page can cause.
	maxRedirects = 5
	maxPage      = 5 << 20
	maxHeader    = 256 << 10
	userAgent    = "Service-Review/1.0"
)

var (
	errRedirects = errors.New("more than 5 redirects")
	errLocation  = errors.New("a redirect leads nowhere")
)

// fetcher fetches pages of strangers: each hop is checked by its URL and again
// by the address that is dialled.
type fetcher struct {
	pages    guard.Pages
	roots    *x509.CertPool
	patience time.Duration
}

// client is made for one review and thrown away after it (done): nothing of one
// account's page stays for the next.
func (f fetcher) client() (client *http.Client, done func()) {
	transport := &http.Transport{
		// No Proxy: one would dial where the guard does not see it.
		DialContext: f.pages.DialContext,
		// Old versions are let in to be reported: nothing secret is sent.
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS10, RootCAs: f.roots},
		ForceAttemptHTTP2:      true,
		MaxConnsPerHost:        linkWorkers + 1,
		MaxResponseHeaderBytes: maxHeader,
	}
	client = &http.Client{
		Transport:     guard.Answers(transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return client, transport.CloseIdleConnections
}

// hops is the way to an answer, from the first URL to the one that answered.
type hops []*url.URL

func (h hops) last() *url.URL { return h[len(h)-1] }

// followRedirects asks for a URL and follows redirects. The caller closes the answer's
// body. The hops are given also with an error.
func (f fetcher) followRedirects(ctx context.Context, client *http.Client, method, raw string) (*http.Response, hops, error) {
	var way hops
	for {
		if err := f.pages.URL(raw); err != nil {
			return nil, way, fmt.Errorf("%w: %w", guard.ErrBlocked, err)
		}
		req, err := http.NewRequestWithContext(ctx, method, raw, nil)
		if err != nil {
			return nil, way, errLocation
		}
		way = append(way, req.URL)
		req.Header.Set("User-Agent", userAgent)
		req.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5")
		resp, err := client.Do(req)
		if err != nil {
			return nil, way, guard.Unquoted(err)
		}
		if !redirects(resp.StatusCode) {
			return resp, way, nil
		}
		resp.Body.Close()
		to, err := resp.Location()
		switch {
		case err != nil:
			return nil, way, errLocation
		case len(way) > maxRedirects:
			return nil, way, errRedirects
		}
		raw = to.String()
	}
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// fetched is a page as it came.
type fetched struct {
	way         hops
	status      int
	contentType string
	tls         *tls.ConnectionState
	firstByte   time.Duration // of all hops
	body        []byte        // at most maxPage
	cut         bool          // the page is larger than that
	cutBy       error         // the body ended early
}

func (f fetcher) fetchPage(ctx context.Context, client *http.Client, raw string) (fetched, error) {
	began := time.Now()
	resp, way, err := f.followRedirects(ctx, client, http.MethodGet, raw)
	if err != nil {
		return fetched{way: way}, err
	}
	defer resp.Body.Close()
	p := fetched{
		way: way, status: resp.StatusCode, tls: resp.TLS,
		contentType: resp.Header.Get("Content-Type"), firstByte: time.Since(began),
	}
	p.body, p.cut, p.cutBy = guard.ReadBody(resp, maxPage, 1, 0) // ctx is limit enough
	return p, nil
}

// why explains a missing answer in words for the client.
func why(err error) string {
	interim, ok := errors.AsType[*guard.InterimError](err)
	switch {
	case errors.Is(err, errRedirects), errors.Is(err, errLocation):
		return err.Error()
	case ok:
		return fmt.Sprintf("it answers with status %d, which no page has", interim.Status)
	}
	return guard.Why(err)
}
