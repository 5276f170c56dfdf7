package wire

import (
	"cmp"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"strconv"

	"github.com/lib/pq"

	"humanqa/domain"
)

// StatusClientGone is the status in the access log when the client hung up before there
// was an answer. It is never on the wire.
const StatusClientGone = 499

// retryAfterOutage is the Retry-After, in seconds, while a part of the service is away.
const retryAfterOutage = 5

// refusal is an error together with the headers its answer carries.
type refusal struct {
	err     error
	headers map[string]string
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// WithHeader adds a header to the answer that err becomes.
func WithHeader(err error, name, value string) error {
	return &refusal{err: err, headers: map[string]string{name: value}}
}

// RetryAfter tells the client when to ask again.
func RetryAfter(err error, seconds int) error {
	return WithHeader(err, "Retry-After", strconv.Itoa(seconds))
}

// HeadersOf are the headers of the answer that err becomes.
func HeadersOf(err error) map[string]string {
	if extra, ok := errors.AsType[*refusal](err); ok {
		return extra.headers
	}
	return nil
}

// Refuse turns an error into the envelope. It is the only place that does:
// refusals of the domain keep their words, everything else is logged under the
// request id and shown as an internal error.
func Refuse(r *Request, err error) Answer {
	shown, status := Classify(r.Context(), err)
	headers := HeadersOf(err)
	switch {
	case status == http.StatusServiceUnavailable && (headers == nil || shown.Cause != nil):
		r.Log.WithError(err).Warn("request not served")
	case status == http.StatusInternalServerError:
		r.Log.WithError(err).Error("internal error")
	}
	ans := Answer{Status: status, Header: make(http.Header), Body: Envelope(shown, r.ID)}
	for name, value := range headers {
		ans.Header.Set(name, value)
	}
	switch {
	case status == http.StatusUnauthorized:
		ans.Header.Set("WWW-Authenticate", `Bearer realm="humanqa"`)
	case status == http.StatusServiceUnavailable && ans.Header.Get("Retry-After") == "":
		ans.Header.Set("Retry-After", strconv.Itoa(retryAfterOutage))
	}
	return ans
}

// Classify decides how an error is shown, and its status. ctx is the request's: once the
// client is gone, an unknown error counts as its consequence, not as a fault.
func Classify(ctx context.Context, err error) (*domain.Error, int) {
	var known *domain.Error
	switch {
	case errors.As(err, &known):
		status := StatusOf(known.Kind)
		if status == http.StatusInternalServerError {
			known = errInternal
		}
		return known, status
	case errors.Is(ctx.Err(), context.Canceled):
		return errInternal, StatusClientGone
	case errors.Is(err, domain.ErrNewer):
		return errNewer, http.StatusServiceUnavailable
	case errors.Is(err, domain.ErrForged):
		return errForged, http.StatusServiceUnavailable
	case outage(err):
		return domain.Unavailable(err), http.StatusServiceUnavailable
	}
	return errInternal, http.StatusInternalServerError
}

// errInternal is all that a client learns of an error that is no refusal.
var errInternal = &domain.Error{
	Code: domain.CodeInternal, Message: "internal error",
	Hint: "send the same request again later; name the requestId when you report this",
}

var statuses = map[domain.Kind]int{
	domain.KindInvalid:      http.StatusBadRequest,
	domain.KindUnauthorized: http.StatusUnauthorized,
	domain.KindPayment:      http.StatusPaymentRequired,
	domain.KindForbidden:    http.StatusForbidden,
	domain.KindSuspended:    http.StatusForbidden,
	domain.KindNotFound:     http.StatusNotFound,
	domain.KindMethod:       http.StatusMethodNotAllowed,
	domain.KindConflict:     http.StatusConflict,
	domain.KindGone:         http.StatusGone,
	domain.KindEncoding:     http.StatusUnsupportedMediaType,
	domain.KindTooLarge:     http.StatusRequestEntityTooLarge,
	domain.KindRateLimited:  http.StatusTooManyRequests,
	domain.KindUnavailable:  http.StatusServiceUnavailable,
}

// StatusOf is the HTTP status that a refusal of the kind answers with.
func StatusOf(k domain.Kind) int { return cmp.Or(statuses[k], http.StatusInternalServerError) }

// errForged is the refusal of what an event would decide that the service did not write.
var errForged = &domain.Error{
	Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
	Message: "the event log holds an event here that this service did not write, and nothing is decided from it",
	Hint:    "the operator has to look at it (humanqa audit verify): name the requestId when you report this",
}

// errNewer is the refusal while processes of two versions run side by side.
var errNewer = &domain.Error{
	Kind: domain.KindUnavailable, Code: domain.CodeUnavailable,
	Message: "the answer needs what a newer version of the service has written, and this process is an older one",
	Hint:    "send the same request again, with the same Idempotency-Key: the upgrade of the service is under way",
}

// outage says that the error comes from a part of the service that is away, and may come
// back. Any other error is a fault of ours.
func outage(err error) bool {
	if fromPostgres, ok := errors.AsType[*pq.Error](err); ok {
		switch fromPostgres.Code.Class() {
		case "08", "53", "57": // connection, resources, operator intervention
			return true
		}
		switch fromPostgres.Code {
		// After an upgrade a read model shows the rows of the version before, until
		// its own are built: a column, or a table, may be missing for a while.
		case "42703", "42P01":
			return true
		// A read of several views and their move to the new
		// rows may wait for each other: Postgres ends one of the two.
		case "40P01":
			return true
		}
		return false
	}
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, driver.ErrBadConn) ||
		errors.As(err, &network)
}

// Envelope is the one shape of every error answer (specification, "Errors").
// Extras cannot displace its own keys.
func Envelope(e *domain.Error, requestID string) []byte {
	out := make(map[string]any, len(e.Extras)+4)
	maps.Copy(out, e.Extras)
	out["error"] = e.Message
	out["code"] = e.Code
	out["requestId"] = requestID
	delete(out, "hint")
	if e.Hint != "" {
		out["hint"] = e.Hint
	}
	body, err := domain.EncodeJSON(out)
	if err != nil { // an extra that JSON cannot carry: the refusal goes without extras
		bare := &domain.Error{Kind: e.Kind, Code: e.Code, Message: e.Message, Hint: e.Hint}
		return Envelope(bare, requestID)
	}
	return body
}

// Readdress gives a stored envelope the id of the request it now answers: the
// specification wants requestId to equal the header.
func Readdress(body []byte, requestID string) ([]byte, error) {
	var out map[string]json.RawMessage
	if err := json.Unmarshal(body, &out); err != nil {
		return nil, err
	}
	id, err := json.Marshal(requestID)
	if err != nil {
		return nil, err
	}
	out["requestId"] = id
	return domain.EncodeJSON(out)
}
