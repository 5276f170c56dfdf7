package tracing

import (
	"context"
	"net/http"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Header is the header of W3C Trace Context.
const Header = "Traceparent"

// maxLinks bounds the further traces that one span names.
const maxLinks = 32

// w3c reads and writes traceparent and tracestate.
var w3c propagation.TraceContext

// Tracer makes spans; nil makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	spans    trace.Tracer
}

// Close sends the spans that wait, as long as ctx lasts.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is a span, or nothing: the zero value takes all calls.
type Span struct{ span trace.Span }

// StartRequest begins the span of a request: below the caller's own where a handler calls
// another one, else below the traceparent of its header.
func (t *Tracer) StartRequest(ctx context.Context, h http.Header, method, route, requestID string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		ctx = w3c.Extract(ctx, propagation.HeaderCarrier(h))
	}
	ctx, span := t.spans.Start(ctx, method+" "+route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.String("humanqa.request_id", requestID)))
	return ctx, Span{span}
}

// StartCaused begins the span of work that events of the log caused: below the first of their
// traces, with links to the others. Where none has a trace there is no span.
func (t *Tracer) StartCaused(ctx context.Context, name string, traces func(yield func(string) bool)) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.startCaused(ctx, name, traces)
}

// startCaused is a function of its own because its variables move to the heap.
func (t *Tracer) startCaused(ctx context.Context, name string, traces func(yield func(string) bool)) (context.Context, Span) {
	var parent string
	var links []trace.Link
	for one := range traces {
		switch {
		case one == "" || one == parent || len(links) == maxLinks:
		case parent == "":
			parent = one
		default:
			if other := parse(ctx, one); len(links) == 0 || !links[len(links)-1].SpanContext.Equal(other) {
				links = append(links, trace.Link{SpanContext: other})
			}
		}
	}
	remote := parse(ctx, parent)
	if !remote.IsValid() {
		return ctx, Span{}
	}
	ctx, span := t.spans.Start(trace.ContextWithRemoteSpanContext(ctx, remote), name,
		trace.WithSpanKind(trace.SpanKindInternal), trace.WithLinks(links...))
	return ctx, Span{span}
}

// StartSend begins the span of a request to an endpoint. Where its delivery has no trace there
// is no span.
func (t *Tracer) StartSend(ctx context.Context, name, traceparent string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	remote := parse(ctx, traceparent)
	if !remote.IsValid() {
		return ctx, Span{}
	}
	ctx, span := t.spans.Start(trace.ContextWithRemoteSpanContext(ctx, remote), name, trace.WithSpanKind(trace.SpanKindClient))
	return ctx, Span{span}
}

// Traceparent is the header for work that follows from the span; empty for none. A trace
// that is not sampled is handed on, too: its id ties the client's own spans together.
func (s Span) Traceparent() string {
	if s.span == nil {
		return ""
	}
	return format(s.span.SpanContext())
}

// Of is the traceparent of the span that ctx belongs to; empty for none.
func Of(ctx context.Context) string { return format(trace.SpanContextFromContext(ctx)) }

// Note keeps a value with the span.
func (s Span) Note(name, value string) {
	if s.records() {
		s.span.SetAttributes(attribute.String(name, value))
	}
}

// Count keeps a number with the span.
func (s Span) Count(name string, n int) {
	if s.records() {
		s.span.SetAttributes(attribute.Int(name, n))
	}
}

// Answered keeps the status of the answer. A status of ours from 500 on is a failure.
func (s Span) Answered(status int) {
	s.Count("http.response.status_code", status)
	if s.records() && status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, http.StatusText(status))
	}
}

// Failed marks the span. The words must hold no secret.
func (s Span) Failed(words string) {
	if s.records() {
		s.span.SetStatus(codes.Error, words)
	}
}

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

func (s Span) records() bool { return s.span != nil && s.span.IsRecording() }

// Log gives each line the ids of the trace and the span that ctx belongs to.
func Log(ctx context.Context, log logrus.FieldLogger) logrus.FieldLogger {
	at := trace.SpanContextFromContext(ctx)
	if !at.IsValid() {
		return log
	}
	return log.WithFields(logrus.Fields{"traceId": at.TraceID().String(), "spanId": at.SpanID().String()})
}

// parse reads a traceparent; one that is none gives an invalid context.
func parse(ctx context.Context, traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(w3c.Extract(context.WithoutCancel(ctx), carrier))
}

func format(of trace.SpanContext) string {
	if !of.IsValid() {
		return ""
	}
	flags := "-00"
	if of.IsSampled() {
		flags = "-01"
	}
	return "00-" + of.TraceID().String() + "-" + of.SpanID().String() + flags
}
