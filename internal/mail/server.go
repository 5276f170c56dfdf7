package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/url"
	"strconv"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"humanqa/internal/guard"
)

// Server is the SMTP server that takes our letters.
type Server struct {
	host     string
	port     int
	implicit bool // TLS from the first byte
	plain    bool // without TLS
	user     string
	password string
	from     *mail.Address
	// Roots are the certificates that are trusted; nil: the system's.
	Roots *x509.CertPool
	// Timeout bounds an attempt, and each read and write in it.
	Timeout time.Duration
}

const (
	submissionPort  = 587
	submissionsPort = 465
	sendTime        = 30 * time.Second
	// mostAnswered bounds the answers of a server in an attempt, in bytes.
	mostAnswered = 64 << 10
)

// ErrSender refuses a server without a sender of its letters.
var ErrSender = errors.New("must be an address such as humanqa <qa@example.com>")

// ParseServer reads the address of an SMTP server, smtp://user:password@host:port or
// smtps://…, and the sender's address. smtp:// wants STARTTLS, except with ?starttls=off.
// Errors never quote the URL, which may hold a password.
func ParseServer(raw, from string) (*Server, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return nil, errors.New("is no URL that starts with smtp:// or smtps://")
	}
	s := &Server{host: u.Hostname(), port: submissionPort, implicit: u.Scheme == "smtps", user: u.User.Username(), Timeout: sendTime}
	s.password, _ = u.User.Password()
	if s.implicit {
		s.port = submissionsPort
	}
	if port := u.Port(); port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return nil, errors.New("has no port from 1 to 65535")
		}
		s.port = int(n)
	}
	switch u.Query().Get("starttls") {
	case "":
	case "off":
		s.plain = !s.implicit
	default:
		return nil, errors.New("has an unknown value of starttls: use off, or leave it out")
	}
	if (u.Path != "" && u.Path != "/") || u.Fragment != "" {
		return nil, errors.New("must have no path: use smtp://host:port")
	}
	if s.plain && s.user != "" && !loopback(s.host) {
		return nil, errors.New("would send the password without TLS: leave starttls=off out")
	}
	if s.from, err = mail.ParseAddress(from); err != nil {
		return nil, ErrSender
	}
	if s.from.Address = dialled(s.from.Address); len(checkAddress(s.from.Address)) > 0 {
		return nil, ErrSender
	}
	return s, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// refusedError is the server's final word on this very letter: 5xx to its receiver or its
// text.
type refusedError struct{ error }

func (e refusedError) Unwrap() error { return e.error }

// send hands one letter over. It returns within Timeout, whatever the server does.
func (s *Server) send(ctx context.Context, l letter) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	message, err := s.message(l)
	if err != nil {
		return refusedError{err}
	}
	var open net.Conn
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithTimeout(s.Timeout), gomail.WithoutNoop(), gomail.WithTLSConfig(s.tls()),
		gomail.WithDialContextFunc(func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			open, err = s.dial(ctx, network, address)
			return open, err
		}),
	}
	switch {
	case s.implicit, s.plain:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.user != "" {
		options = append(options, gomail.WithUsername(s.user), gomail.WithPassword(s.password),
			gomail.WithOpportunisticSMTPAuth(s.mechanisms()...))
	}
	client, err := gomail.NewClient(s.host, options...)
	if err != nil {
		return fmt.Errorf("prepare the mail client: %w", err)
	}
	if err := client.DialWithContext(ctx); err != nil {
		if open != nil {
			_ = open.Close() // the attempt is over
		}
		return fmt.Errorf("reach the mail server: %w", err)
	}
	// A stop of the service, and the end of the attempt, end a read that waits.
	defer context.AfterFunc(ctx, func() { _ = open.Close() })()
	defer func() { _ = open.Close() }() // after QUIT it is closed
	if err := client.Send(message); err != nil {
		said, answered := errors.AsType[*gomail.SendError](err)
		if !answered || said.ErrorCode() == 0 {
			return fmt.Errorf("hand a letter over: %w", guard.Unquoted(err))
		}
		// The server's words may quote the letter.
		coded := errors.New(strings.TrimSpace(fmt.Sprintf("%s: %d %s", said.Reason, said.ErrorCode(), said.EnhancedStatusCode())))
		if said.ErrorCode() >= 500 && (said.Reason == gomail.ErrSMTPRcptTo || said.Reason == gomail.ErrSMTPDataClose) {
			return refusedError{coded}
		}
		return fmt.Errorf("hand a letter over: %w", coded)
	}
	_ = client.Close() // it has been taken
	return nil
}

// mechanisms are the ways to sign in, the best first. Without TLS only on this machine
// (ParseServer).
func (s *Server) mechanisms() []gomail.SMTPAuthType {
	list := []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1}
	if s.plain {
		return append(list, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc)
	}
	return append(list, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin)
}

func (s *Server) tls() *tls.Config {
	return &tls.Config{ServerName: s.host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
}

// Reachable connects, and sends nothing.
func (s *Server) Reachable(ctx context.Context) error {
	conn, err := s.dial(ctx, "tcp", net.JoinHostPort(s.host, strconv.Itoa(s.port)))
	if err != nil {
		return err
	}
	return conn.Close()
}

// dial connects, and with smtps:// makes the TLS connection that the client knows as one.
func (s *Server) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(s.Timeout)
	if err := conn.SetDeadline(until); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	limited := &bounded{Conn: conn, left: mostAnswered, until: until}
	if !s.implicit {
		return limited, nil
	}
	secure := tls.Client(limited, s.tls())
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

func (s *Server) message(l letter) (*gomail.Msg, error) {
	m := gomail.NewMsg(gomail.WithEncoding(gomail.EncodingQP))
	m.FromMailAddress(s.from)
	if err := m.To(l.To); err != nil {
		return nil, errors.New("the address is none")
	}
	m.Subject(l.Subject)
	m.SetDate()
	m.SetMessageIDWithValue(l.ID + s.from.Address[strings.LastIndexByte(s.from.Address, '@'):])
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetListUnsubscribe(l.Stop)
	m.SetListUnsubscribePost()
	m.SetBodyString(gomail.TypeTextPlain, l.Text)
	return m, nil
}

// bounded is a connection that ends at a moment and reads no more than so many bytes.
type bounded struct {
	net.Conn
	until time.Time
	left  int
}

// Read implements net.Conn.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the server says too much: %w", io.ErrUnexpectedEOF)
	}
	if len(p) > b.left {
		p = p[:b.left]
	}
	n, err := b.Conn.Read(p)
	b.left -= n
	return n, err
}

// SetDeadline implements net.Conn: no later than the end.
func (b *bounded) SetDeadline(t time.Time) error { return b.Conn.SetDeadline(b.earlier(t)) }

// SetReadDeadline implements net.Conn: no later than the end.
func (b *bounded) SetReadDeadline(t time.Time) error { return b.Conn.SetReadDeadline(b.earlier(t)) }

// SetWriteDeadline implements net.Conn: no later than the end.
func (b *bounded) SetWriteDeadline(t time.Time) error { return b.Conn.SetWriteDeadline(b.earlier(t)) }

func (b *bounded) earlier(t time.Time) time.Time {
	if t.IsZero() || t.After(b.until) {
		return b.until
	}
	return t
}
