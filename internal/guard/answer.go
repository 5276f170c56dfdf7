package guard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Answers makes a transport's answers safe to read, hostile ones too. Every read of a
// body ends with the request's context: net/http does not promise that once a connection
// has been handed over. A status below 200, such as 101 Switching Protocols, is no answer
// but an *InterimError: the bytes behind it are not a body and have no end.
func Answers(next http.RoundTripper) http.RoundTripper { return answers{next} }

// InterimError says that a server ended its answer with a status that
// announces one.
type InterimError struct{ Status int }

func (e *InterimError) Error() string { return fmt.Sprintf("answered %d", e.Status) }

// ErrSlow is in the chain of ReadBody's error when the body took too long.
var ErrSlow = errors.New("the answer's body came too slowly")

type answers struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a answers) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := a.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusOK {
		go resp.Body.Close() // with TLS it may wait for the other side
		return nil, &InterimError{Status: resp.StatusCode}
	}
	// The watchdog: closing a body ends the read that is under way.
	body, within := resp.Body, req.Context()
	release := context.AfterFunc(within, func() { _ = body.Close() })
	resp.Body = &watched{ReadCloser: body, within: within, release: release}
	return resp, nil
}

// CloseIdleConnections lets http.Client's method of that name through.
func (a answers) CloseIdleConnections() {
	if t, ok := a.next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

type watched struct {
	io.ReadCloser
	within  context.Context
	release func() bool
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil && err != io.EOF && w.within.Err() != nil { //nolint:errorlint // a reader's EOF is bare
		err = w.within.Err()
	}
	return n, err
}

func (w *watched) Close() error {
	w.release()
	return w.ReadCloser.Close()
}

// ReadBody reads an answer's body; the caller closes it. It gives the first keep bytes
// and whether there are more; up to drain further ones are read and dropped, which lets a
// connection be used again. It takes no longer than limit (0: the request's context alone
// decides). An error says why the body broke off; the bytes before are given all the
// same.
func ReadBody(resp *http.Response, keep, drain int64, limit time.Duration) (head []byte, longer bool, err error) {
	inTime := func() bool { return true }
	if limit > 0 {
		inTime = time.AfterFunc(limit, func() { _ = resp.Body.Close() }).Stop
	}
	head, err = io.ReadAll(io.LimitReader(resp.Body, keep))
	var dropped int64
	if err == nil && int64(len(head)) == keep {
		dropped, err = io.Copy(io.Discard, io.LimitReader(resp.Body, drain))
	}
	// A server that sees its client hang up may end the body properly, and that may
	// still be read: it is unknown then whether it is whole.
	if !inTime() {
		err = errors.Join(ErrSlow, err)
	}
	return head, dropped > 0, err
}

// Unquoted is the error of a request with the words of Why, and the chain of err. An error
// that is kept or logged passes through here.
func Unquoted(err error) error { return unquoted{err} }

type unquoted struct{ error }

func (u unquoted) Error() string { return Why(u.error) }
func (u unquoted) Unwrap() error { return u.error }

// Why explains a missing answer. It quotes neither the address nor the other side: both may
// hold a client's own words or token.
func Why(err error) string {
	var (
		timeout   net.Error
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     tls.AlertError
		record    tls.RecordHeaderError
		interim   *InterimError
	)
	switch {
	case errors.Is(err, ErrBlocked):
		return "it leads to an address that is private, reserved or not a web page's"
	case errors.As(err, &interim):
		return interim.Error()
	case errors.As(err, &name) && name.IsNotFound:
		return "the host name does not exist"
	case errors.As(err, &authority):
		return "the certificate is not signed by a known authority"
	case errors.As(err, &hostname):
		return "the certificate is for another host"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate is expired or not valid yet"
	case errors.As(err, &invalid), errors.As(err, &alert), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "the TLS handshake failed"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "there was no answer in time"
	case errors.Is(err, context.Canceled):
		return "it was interrupted"
	}
	return "the connection failed"
}
