package ai

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
)

const (
	maxLinks    = 20
	linkWorkers = 4
)

// linkState is the result for a link.
type linkState struct {
	url    string
	asked  bool
	broken string // why; empty: it is not
}

// checkLinks asks for each link, a few at a time, until ctx ends.
func (f fetcher) checkLinks(ctx context.Context, client *http.Client, links []string) []linkState {
	states := make([]linkState, len(links))
	var workers errgroup.Group
	workers.SetLimit(linkWorkers)
	for i, link := range links {
		states[i].url = link
		workers.Go(func() error {
			states[i].asked, states[i].broken = f.checkLink(ctx, client, link)
			return nil
		})
	}
	_ = workers.Wait() // no worker errs
	return states
}

// checkLink asks with HEAD first. If that fails, it asks with GET, as a browser would.
func (f fetcher) checkLink(ctx context.Context, client *http.Client, link string) (asked bool, broken string) {
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		resp, _, err := f.followRedirects(ctx, client, method, link)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				resp.Body.Close()
			}
			return false, ""
		case err != nil:
			broken = why(err)
			continue
		}
		resp.Body.Close()
		if resp.StatusCode < 400 {
			return true, ""
		}
		broken = ""
		if gone(resp.StatusCode) {
			broken = fmt.Sprintf("status %d", resp.StatusCode)
		}
	}
	return true, broken
}

// gone tells a dead link from one that wants a sign-in or fewer requests.
func gone(status int) bool {
	return status == http.StatusNotFound || status == http.StatusGone || status >= http.StatusInternalServerError
}
