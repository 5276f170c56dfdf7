package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"humanqa/internal/receiver"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/otlptest"
)

// One trace and one id lead from a client's request to the webhook that it causes.
func TestATraceLeadsFromTheRequestToTheWebhook(t *testing.T) {
	t.Parallel()
	collector := otlptest.New(t)
	p := newProgram(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50",
		"HUMANQA_LOG_LEVEL=info", "HUMANQA_LOG_FORMAT=json")
	s := p.spawn("--demo")
	key, project, _, arrived := p.newReceived(t)

	const trace, caller = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1, "projectId", project),
		"X-Request-Id", "deploy-4711", "Traceparent", "00-"+trace+"-"+caller+"-01")
	var delivery receiver.Delivery
	select {
	case delivery = <-arrived:
	case <-time.After(eventually.Patience):
		t.Fatal("no webhook came")
	}
	if got := delivery.Header.Get("X-Request-Id"); got != "deploy-4711" {
		t.Errorf("the webhook's x-request-id is %q", got)
	}
	sent := strings.Split(delivery.Header.Get("Traceparent"), "-")
	if len(sent) != 4 || sent[1] != trace || sent[3] != "01" {
		t.Fatalf("the webhook's traceparent is %v", sent)
	}

	var spans []otlptest.Span
	one := func(name, parent string) otlptest.Span {
		at := slices.IndexFunc(spans, func(s otlptest.Span) bool { return s.Name == name && s.Parent == parent })
		if at < 0 {
			return otlptest.Span{}
		}
		return spans[at]
	}
	var request otlptest.Span
	eventually.Within(t, eventually.Patience, func() error {
		spans = collector.Spans(trace)
		request = one("POST /v1/jobs", caller)
		for _, name := range []string{"append", "projection batch", "webhook attempt"} {
			if one(name, request.ID).Name == "" {
				return fmt.Errorf("no %s below the request: %+v", name, spans)
			}
		}
		return nil
	})
	attempt := one("webhook attempt", request.ID)
	if attempt.ID != sent[2] || attempt.Values["humanqa.delivery"] != delivery.DeliveryID || attempt.Failed {
		t.Errorf("the attempt's span is %+v, its header %v", attempt, sent)
	}
	if request.Values["humanqa.request_id"] != "deploy-4711" || request.Service != "humanqa" {
		t.Errorf("the request's span is %+v", request)
	}

	// A repeat has its own span and header; its id and its bytes stay.
	detail := "/v1/projects/" + project + "/deliveries/" + delivery.DeliveryID
	eventually.True(t, "the delivery is settled", func() bool { // while it is under way, it is not sent again
		return p.call(http.StatusOK, "GET", detail, key, nil).text("status") == "delivered"
	})
	p.call(http.StatusAccepted, "POST", detail+"/redeliver", key, nil)
	var again receiver.Delivery
	select {
	case again = <-arrived:
	case <-time.After(eventually.Patience):
		t.Fatal("the webhook was not sent again")
	}
	if string(again.Body) != string(delivery.Body) || again.Header.Get("X-Request-Id") != "deploy-4711" ||
		again.Header.Get("Traceparent") == delivery.Header.Get("Traceparent") || !strings.Contains(again.Header.Get("Traceparent"), trace) {
		t.Errorf("the repeat has %v", again.Header)
	}
	var shown struct{ Headers map[string]string }
	if got := p.call(http.StatusOK, "GET", detail, key, nil); json.Unmarshal(got.body, &shown) != nil || shown.Headers["X-Request-Id"] != "deploy-4711" {
		t.Errorf("the delivery's headers are %s", got.body)
	}

	lines := 0
	for line := range strings.Lines(s.Said()) {
		var of struct{ RequestID, TraceID, SpanID string }
		if json.Unmarshal([]byte(line), &of) == nil && of.RequestID == "deploy-4711" {
			if lines++; of.TraceID != trace || of.SpanID != request.ID {
				t.Errorf("a line without its trace: %s", line)
			}
		}
	}
	if lines == 0 {
		t.Error("no line of the request")
	}
}

// Without OTEL_* a client's traceparent leads nowhere, and its x-request-id still does.
func requestIDWithoutTraces(t *testing.T, p *instance) {
	key, project, _, arrived := p.newReceived(t)
	p.call(http.StatusCreated, "POST", "/v1/jobs", key, submission(1, "projectId", project),
		"X-Request-Id", "deploy-4711", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	select {
	case r := <-arrived:
		if r.Header.Get("X-Request-Id") != "deploy-4711" || r.Header.Get("Traceparent") != "" {
			t.Errorf("the webhook has %v", r.Header)
		}
	case <-time.After(eventually.Patience):
		t.Fatal("no webhook came")
	}
}

func TestASettingOfTracesThatIsNoneStopsTheStart(t *testing.T) {
	t.Parallel()
	p := newProgram(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
	s := p.launch()
	s.WaitExit(eventually.Patience)
	if !strings.Contains(s.Said(), "OTEL_EXPORTER_OTLP_PROTOCOL") || !strings.Contains(s.Said(), "http/protobuf") || s.Err() == nil {
		t.Errorf("the start said %q, %v", s.Said(), s.Err())
	}
}
