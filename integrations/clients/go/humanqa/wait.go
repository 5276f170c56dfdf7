package humanqa

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"humanqa/internal/backoff"
)

const (
	// holdFor is how long the service holds the state of a test until it changes, in seconds.
	holdFor = 25
	// betweenLooks leaves most of a key's sixty requests a minute to others.
	betweenLooks = 2 * time.Second
)

// Wait follows a test until it has ended, and gives its last state: with a result if it is
// completed, which may take an hour. The context bounds the wait. A network that is lost
// meanwhile costs time and nothing else. changed hears of each state; it may be nil.
func (c *Client) Wait(ctx context.Context, jobID string, changed func(HostedStatus)) (HostedStatus, error) {
	path, etag := "/v1/hosted/status/"+url.PathEscape(jobID), ""
	for failures := 0; ; {
		var now HostedStatus
		a, err := c.Once(ctx, Call{Method: http.MethodGet, Path: path, ETag: etag}, &now)
		pause := betweenLooks
		switch {
		case err != nil && (ctx.Err() != nil || !Passing(err)):
			return now, err
		case err != nil:
			failures++
			pause = Pause(err, failures)
		case a.Status != http.StatusNotModified:
			path, etag, failures = fmt.Sprintf("/v1/hosted/status/%s?wait=%d", url.PathEscape(jobID), holdFor), a.ETag, 0
			if changed != nil {
				changed(now)
			}
			if now.IsFinal {
				return now, nil
			}
		}
		if err := backoff.Wait(ctx, pause); err != nil {
			return now, err
		}
	}
}
