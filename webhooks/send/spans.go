package send

import (
	"context"
	"net/url"

	"humanqa/webhooks/queue"
)

// sendTraced sends a delivery as a span of the trace of the request that led to it. The
// trace continues at the receiver. An attempt of a request without a trace has no span.
func (s *sender) sendTraced(ctx context.Context, c queue.Delivery, by secrets) queue.Answer {
	ctx, span := s.Tracer.StartSend(ctx, "webhook attempt", c.Trace)
	defer span.End()
	c.Trace = span.Traceparent() // empty without a tracer: the receiver must not refer to a missing span
	span.Note("humanqa.delivery", c.ID)
	span.Note("humanqa.webhook_event", c.Event)
	span.Note("humanqa.request_id", c.RequestID)
	span.Count("humanqa.attempt", c.Attempt)
	if u, err := url.Parse(c.URL); err == nil { // the rest may hold a token
		span.Note("server.address", u.Host)
	}
	a := s.sendDelivery(ctx, c, by)
	if a.Status != 0 {
		span.Count("http.response.status_code", a.Status)
	}
	if a.Err != "" {
		span.Failed(a.Err)
	}
	return a
}
