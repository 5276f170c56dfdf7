package listen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"humanqa/internal/receiver"
)

const (
	// forwardTime is the time that the service itself gives an endpoint.
	forwardTime = 10 * time.Second
	// forwardRead bounds the read of an answer that is not used.
	forwardRead = 1 << 20
)

// answer gives the status to answer a delivery with, by the flags; passed says how passing
// on went, where it was asked for.
func (t *told) answer(sender context.Context, r receiver.Delivery) (status int, passed string) {
	switch {
	case t.Hang:
		select {
		case <-sender.Done():
		case <-t.ended:
		}
		return receiver.NoAnswer, ""
	case t.Answer != 0:
		return t.Answer, ""
	case t.ForwardTo == "":
		return http.StatusNoContent, ""
	}
	began := time.Now()
	status, err := t.forward(sender, r)
	if err != nil {
		return http.StatusBadGateway, "not passed on: " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return status, fmt.Sprintf("passed on in %d ms", time.Since(began).Milliseconds())
}

// forward sends the same bytes, and the headers that belong to them.
func (t *told) forward(ctx context.Context, r receiver.Delivery) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.ForwardTo, bytes.NewReader(r.Body))
	if err != nil {
		return 0, err
	}
	for name, values := range r.Header {
		if name == "Content-Type" || name == "User-Agent" || strings.HasPrefix(name, "X-Service-") || strings.HasPrefix(name, "Webhook-") {
			req.Header[name] = values
		}
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }() // read as far as is needed
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, forwardRead))
	return resp.StatusCode, nil
}
