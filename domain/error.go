package domain

import (
	"errors"
	"fmt"
	"maps"
)

// Kind says what class of refusal an Error is. The HTTP status follows from
// it in one place (httpapi); the domain knows no status codes.
type Kind int

// The kinds of refusal. Everything that is not an *Error is internal.
const (
	KindInvalid Kind = iota + 1
	KindUnauthorized
	KindPayment
	KindForbidden
	KindSuspended
	KindNotFound
	KindConflict
	KindTooLarge
	KindRateLimited
	KindUnavailable
	KindMethod
	KindGone     // it existed, and will never exist again
	KindEncoding // the body has an encoding that is not read
)

// Code is a stable machine-readable error code (specification, "Errors").
type Code string

// Codes of the specification, and the additive METHOD_NOT_ALLOWED, UNAVAILABLE and
// GONE and those of cursors.
const (
	CodeInvalidRequest      Code = "INVALID_REQUEST"
	CodeUnauthorized        Code = "UNAUTHORIZED"
	CodeInsufficientCredits Code = "INSUFFICIENT_CREDITS"
	CodeForbidden           Code = "FORBIDDEN"
	CodeAccountSuspended    Code = "ACCOUNT_SUSPENDED"
	CodeNotFound            Code = "NOT_FOUND"
	CodeConflict            Code = "CONFLICT"
	CodeSecretConflict      Code = "WEBHOOK_SECRET_CONFLICT"
	CodePayloadTooLarge     Code = "PAYLOAD_TOO_LARGE"
	CodeRateLimited         Code = "RATE_LIMITED"
	CodeInternal            Code = "INTERNAL_ERROR"
	CodeMethodNotAllowed    Code = "METHOD_NOT_ALLOWED"
	CodeUnavailable         Code = "UNAVAILABLE"
	CodeCursorAhead         Code = "CURSOR_AHEAD"
	CodeCursorGone          Code = "CURSOR_GONE"
	CodeAnotherLog          Code = "ANOTHER_LOG"
	CodeGone                Code = "GONE"
)

// Error is a refusal that may be shown to the caller. Message and Hint are
// safe to show; Extras become additional top-level keys of the envelope;
// Cause is for the log only.
type Error struct {
	Kind    Kind
	Code    Code
	Message string
	Hint    string
	Extras  map[string]any
	Cause   error
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %v", e.Message, e.Cause)
	}
	return e.Message
}

// Unwrap gives the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Cause }

// WithHint returns a copy that names the next step.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// With returns a copy that carries one more top-level key.
func (e *Error) With(key string, value any) *Error {
	c := *e
	c.Extras = map[string]any{}
	maps.Copy(c.Extras, e.Extras)
	c.Extras[key] = value
	return &c
}

// Detail is one offending place of a request: a path such as
// "checklistItems[2].description" and the problem there.
type Detail struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// Invalid refuses a request and names every offending path.
func Invalid(details ...Detail) *Error {
	msg := "the request is invalid"
	if len(details) > 0 {
		msg = fmt.Sprintf("%s: %s", details[0].Path, details[0].Message)
		if n := len(details) - 1; n > 0 {
			msg = fmt.Sprintf("%s (and %d more)", msg, n)
		}
	}
	return &Error{
		Kind: KindInvalid, Code: CodeInvalidRequest, Message: msg,
		Extras: map[string]any{"details": details},
	}
}

// InvalidAt is Invalid for one place.
func InvalidAt(path, format string, args ...any) *Error {
	return Invalid(Detail{Path: path, Message: fmt.Sprintf(format, args...)})
}

// Wrong gathers the offending places of a request.
type Wrong []Detail

// Add adds a place.
func (w *Wrong) Add(path, format string, args ...any) {
	*w = append(*w, Detail{Path: path, Message: fmt.Sprintf(format, args...)})
}

// AddIf adds a place if it offends.
func (w *Wrong) AddIf(offends bool, path, format string, args ...any) {
	if offends {
		w.Add(path, format, args...)
	}
}

// Refusal is Invalid for the places; nil without any.
func (w Wrong) Refusal() error {
	if len(w) == 0 {
		return nil
	}
	return Invalid(w...)
}

// NotFound refuses because the thing does not exist for this account. what is
// a noun: "job", "project".
func NotFound(what string) *Error {
	return &Error{Kind: KindNotFound, Code: CodeNotFound, Message: what + " not found"}
}

// Gone refuses because the thing existed and is kept no longer.
func Gone(format string, args ...any) *Error {
	return &Error{Kind: KindGone, Code: CodeGone, Message: fmt.Sprintf(format, args...)}
}

// Conflict refuses because the state forbids the operation.
func Conflict(format string, args ...any) *Error {
	return &Error{Kind: KindConflict, Code: CodeConflict, Message: fmt.Sprintf(format, args...)}
}

// Forbidden refuses a valid key that lacks access.
func Forbidden(format string, args ...any) *Error {
	return &Error{Kind: KindForbidden, Code: CodeForbidden, Message: fmt.Sprintf(format, args...)}
}

// Unauthorized refuses a missing or unusable credential.
func Unauthorized(format string, args ...any) *Error {
	return &Error{Kind: KindUnauthorized, Code: CodeUnauthorized, Message: fmt.Sprintf(format, args...)}
}

// InsufficientCredits refuses a charge and says how much is short
// (specification, "Errors", 402).
func InsufficientCredits(required, available Credits) *Error {
	return &Error{
		Kind: KindPayment, Code: CodeInsufficientCredits,
		Message: fmt.Sprintf("not enough credits: %d required, %d available", required, available),
		Hint:    "add credits to the account, or submit fewer or cheaper jobs",
		Extras: map[string]any{
			"creditsRequired":  required,
			"creditsAvailable": available,
			"creditsShort":     required - available,
		},
	}
}

// Unavailable says that the service cannot answer right now; the same request
// may be sent again. The outcome of a write may be unknown.
func Unavailable(cause error) *Error {
	return &Error{
		Kind: KindUnavailable, Code: CodeUnavailable, Message: "the service is not available right now",
		Hint: "send the same request again, with the same Idempotency-Key", Cause: cause,
	}
}

// ErrNewer says that a newer version of the service than this process runs wrote an
// event: its type or its version is not known. Nothing may be decided without it.
var ErrNewer = errors.New("a newer version of the service has written it")

// ErrForged says that the log holds an event which the service did not write: it lacks the
// service's MAC. Nothing may be decided from it.
var ErrForged = errors.New("the log holds what this service did not write")

// The reasons why a sealed text can never be opened.
var (
	// ErrShredded says that the key of the text was destroyed on purpose.
	ErrShredded = errors.New("the secret was shredded")
	// ErrKeyLost says that the key is not in this database, although it was not
	// destroyed: the database was made anew, or belongs to another log.
	ErrKeyLost = errors.New("the key of its texts is not in this database")
	// ErrUnsealable says that the text was sealed for another stream, or is damaged.
	ErrUnsealable = errors.New("not sealed for this stream, or damaged")
)

// IsKind says whether err is, or wraps, a refusal of that kind.
func IsKind(err error, kind Kind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}
