package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/otlptest"
)

const (
	client = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	other  = "00-1af7651916cd43dd8448eb211c80319d-c7ad6b7169203332-01"
)

func inMemory() (*Tracer, *tracetest.SpanRecorder) {
	made := tracetest.NewSpanRecorder()
	return of(sdk.NewTracerProvider(sdk.WithSpanProcessor(made))), made
}

func header(traceparent string) http.Header {
	h := http.Header{}
	h.Set(Header, traceparent)
	return h
}

func TestWithoutATracerNothingIsMadeAndNothingCosts(t *testing.T) {
	var none *Tracer
	ctx, h := t.Context(), header(client)
	log := logrus.New()
	traces := func(yield func(string) bool) { yield(client) }
	cost := testing.AllocsPerRun(1000, func() {
		within, span := none.StartRequest(ctx, h, "POST", "/v1/jobs", "r")
		_, caused := none.StartCaused(within, "append", traces)
		_, sent := none.StartSend(within, "webhook attempt", client)
		for _, s := range []Span{span, caused, sent} {
			s.Note("a", "b")
			s.Count("a", 1)
			s.Answered(500)
			s.Failed("no")
			s.End()
		}
		if within != ctx || span.Traceparent() != "" || Of(within) != "" || Log(within, log) != logrus.FieldLogger(log) {
			t.Error("something was made")
		}
	})
	if cost != 0 {
		t.Errorf("%v allocations a request, want none", cost)
	}
}

func BenchmarkARequestWithoutATracer(b *testing.B) {
	var none *Tracer
	h := http.Header{}
	b.ReportAllocs()
	for b.Loop() {
		_, span := none.StartRequest(b.Context(), h, "POST", "/v1/jobs", "r")
		span.End()
	}
}

func TestARequestGoesOnFromTheClientsTraceOrBeginsOne(t *testing.T) {
	t.Parallel()
	for came, goesOn := range map[string]bool{
		client: true, strings.ToUpper(client): false, "": false, "00-0-0-01": false, client + client: false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false, "\x00'; DROP TABLE jobs": false,
	} {
		tracer, made := inMemory()
		ctx, span := tracer.StartRequest(t.Context(), header(came), "POST", "/v1/jobs", "req-1")
		handed := Of(ctx)
		span.Answered(http.StatusServiceUnavailable)
		span.End()
		got := made.Ended()[0]
		if goesOn != (got.Parent().SpanID().String() == "b7ad6b7169203331") || goesOn != strings.Contains(handed, "0af7651916cd43dd8448eb211c80319c") {
			t.Errorf("%q: the parent is %v, handed on is %s", came, got.Parent().SpanID(), handed)
		}
		if parse(t.Context(), handed).SpanID() != got.SpanContext().SpanID() || handed != span.Traceparent() {
			t.Errorf("%q: %s is handed on, the span is %v", came, handed, got.SpanContext().SpanID())
		}
		if got.Name() != "POST /v1/jobs" || got.Status().Description != "Service Unavailable" {
			t.Errorf("%q: %s %v", came, got.Name(), got.Status())
		}
	}
}

// A trace that is not sampled is handed on as such: the client's spans keep its id.
func TestATraceThatIsNotSampledKeepsItsID(t *testing.T) {
	t.Parallel()
	tracer, made := inMemory()
	unsampled := strings.TrimSuffix(client, "01") + "00"
	ctx, span := tracer.StartRequest(t.Context(), header(unsampled), "POST", "/v1/jobs", "r")
	span.End()
	_, sent := tracer.StartSend(t.Context(), "webhook attempt", Of(ctx))
	sent.End()
	if got := sent.Traceparent(); !strings.HasPrefix(got, "00-0af7651916cd43dd8448eb211c80319c-") || !strings.HasSuffix(got, "-00") {
		t.Errorf("%s is sent", got)
	}
	if n := len(made.Ended()); n != 0 {
		t.Errorf("%d spans of a trace that is not sampled", n)
	}
}

func TestWorkOfSeveralRequestsIsBelowTheFirstAndNamesTheOthers(t *testing.T) {
	t.Parallel()
	tracer, made := inMemory()
	of := func(traces ...string) sdk.ReadOnlySpan {
		before := len(made.Ended())
		_, span := tracer.StartCaused(t.Context(), "append", slices.Values(traces))
		span.End()
		if ended := made.Ended(); len(ended) > before {
			return ended[before]
		}
		return nil
	}
	if of() != nil || of("", "no traceparent") != nil {
		t.Error("work that no traced request caused has a span")
	}
	if got := of("", client, client, other, other); got.Parent().TraceID().String() != "0af7651916cd43dd8448eb211c80319c" ||
		len(got.Links()) != 1 || got.Links()[0].SpanContext.TraceID().String() != "1af7651916cd43dd8448eb211c80319d" {
		t.Errorf("parent %v, links %v", got.Parent().TraceID(), got.Links())
	}
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("00-%032x-b7ad6b7169203331-01", i+1))
	}
	if got := len(of(many...).Links()); got != maxLinks {
		t.Errorf("%d links, want %d at most", got, maxLinks)
	}
}

func TestALineOfTheLogHasTheIDsOfItsTrace(t *testing.T) {
	t.Parallel()
	tracer, _ := inMemory()
	var out bytes.Buffer
	log := logrus.New()
	log.SetOutput(&out)
	ctx, span := tracer.StartRequest(t.Context(), header(client), "GET", "/", "r")
	Log(ctx, log).Info("here")
	if want := "spanId=" + strings.Split(span.Traceparent(), "-")[2] + " traceId=0af7651916cd43dd8448eb211c80319c"; !strings.Contains(out.String(), want) {
		t.Errorf("%s does not have %s", &out, want)
	}
}

func TestOnlyOTELAsksForTraces(t *testing.T) {
	t.Parallel()
	const at = "http://127.0.0.1:4318"
	for _, c := range []struct {
		set     map[string]string
		asked   bool
		refusal string
	}{
		{},
		{set: map[string]string{"OTEL_SERVICE_NAME": "qa", "OTEL_TRACES_SAMPLER": "always_on"}},
		{set: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at}, asked: true},
		{set: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": at + "/v1/traces"}, asked: true},
		{set: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, asked: true},
		{set: map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": at}},
		{set: map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": at}},
		{set: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, refusal: "set it to otlp or none"},
		{set: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "127.0.0.1:4318"}, refusal: "it is no URL"},
		{set: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": at, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, refusal: "set it to http/protobuf"},
	} {
		asked, err := asksForTraces(func(name string) string { return c.set[name] })
		if asked != c.asked || (err == nil) != (c.refusal == "") || err != nil && !strings.Contains(err.Error(), c.refusal) {
			t.Errorf("%v: %v, %v", c.set, asked, err)
		}
	}
}

// A collector that takes connections and never answers holds up neither work nor a stop.
func TestACollectorThatNeverAnswersDelaysNothing(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a port of this machine, at once
	must.NoError(t, err)
	defer func() { _ = ln.Close() }()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+ln.Addr().String())
	// Whoever waits for an answer does so for an hour.
	t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000")
	t.Setenv("OTEL_BSP_EXPORT_TIMEOUT", "3600000")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	tracer, err := FromEnvironment(t.Context(), "test", quiet)
	must.NoError(t, err)
	for range 10_000 { // five queues full
		_, span := tracer.StartRequest(t.Context(), nil, "GET", "/", "r")
		span.End()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := tracer.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the stop ended with %v", err)
	}
	goleak.VerifyNone(t, goleak.IgnoreCurrent())
}

func TestWhatIsLeftIsSentAtTheEnd(t *testing.T) {
	collector := otlptest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=qa")
	tracer, err := FromEnvironment(t.Context(), "test", logrus.New())
	must.NoError(t, err)
	_, span := tracer.StartRequest(t.Context(), header(client), "GET", "/v1/jobs", "r")
	span.End()
	must.NoError(t, tracer.Close(t.Context()))
	eventually.True(t, "the span is there", func() bool {
		got := collector.Spans("0af7651916cd43dd8448eb211c80319c")
		return len(got) == 1 && got[0].Service == "qa" && got[0].Name == "GET /v1/jobs"
	})
}
