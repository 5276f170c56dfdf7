package tracing

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// complainEvery bounds how often a collector that is away is logged.
const complainEvery = time.Minute

// FromEnvironment makes a tracer where OTEL_* asks for one, else nil. The names are those
// of OpenTelemetry, and the library reads them: the sampler, the queue, the headers, the
// resource. Only values that the library would silently ignore are refused here.
func FromEnvironment(ctx context.Context, version string, log logrus.FieldLogger) (*Tracer, error) {
	if asked, err := asksForTraces(os.Getenv); err != nil || !asked {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("the exporter of traces: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "humanqa"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(&complaints{log: log.WithField("part", "traces")})
	return of(sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))), nil
}

func of(provider *sdk.TracerProvider) *Tracer {
	return &Tracer{provider: provider, spans: provider.Tracer("humanqa")}
}

// asksForTraces says whether the environment names a collector.
func asksForTraces(get func(string) string) (bool, error) {
	if strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return false, nil
	}
	firstOf := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := get(name); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	name, endpoint := firstOf("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	switch exporter := get("OTEL_TRACES_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if endpoint == "" {
			return false, nil
		}
	default:
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER: %q is not there; set it to otlp or none", exporter)
	}
	if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return false, fmt.Errorf("%s: it is no URL; name the collector's OTLP over HTTP, such as http://127.0.0.1:4318", name)
	}
	name, protocol := firstOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	if protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("%s: %q is not there; set it to http/protobuf, and the endpoint to the collector's port for it, which is 4318 by default",
			name, protocol)
	}
	return true, nil
}

// complaints logs the library's errors, such as a collector that is away.
type complaints struct {
	log  logrus.FieldLogger
	mu   sync.Mutex
	last time.Time
}

// Handle implements otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.last) >= complainEvery {
		c.last = now
		c.log.WithError(err).Warn("traces are lost")
	}
}
