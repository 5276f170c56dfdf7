// Package tracing sends OpenTelemetry traces, where the environment asks for them by OTEL_*.
//
// A trace begins with a request, or goes on from the client's traceparent. The log carries it
// from there: the metadata of each event hold the traceparent of the request that caused it. So
// an append, a batch of rows and an attempt of a delivery are spans of that trace, in whichever
// process and however late they run. Work that no traced request caused has no span.
//
// A nil *Tracer makes no spans, starts no goroutine and opens no connection. A collector that
// does not answer delays nothing: spans wait in a bounded queue of the library, and are dropped
// once it is full.
package tracing
