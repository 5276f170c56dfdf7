// Package mailtest is an SMTP server in the test's process, which keeps the letters that it takes.
package mailtest

import (
	"bytes"
	"errors"
	"io"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"slices"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	notices "humanqa/internal/mail"
	"humanqa/internal/testing/must"
)

// Links are those of a service with a key of its own.
func Links() notices.Links {
	return notices.Links{BaseURL: "https://qa.example", Keys: func(uint32) (uint32, map[uint32][]byte) { return 1, map[uint32][]byte{1: []byte("a key")} }}
}

// Letter is a letter as the SMTP server took it.
type Letter struct {
	To     string
	Header mail.Header
	Body   string
	Raw    string
}

// Server is a real SMTP server that keeps the letters that it takes.
type Server struct {
	t       *testing.T
	Address string
	mu      sync.Mutex
	letters []Letter
	refuse  error // the answer to RCPT TO; nil: it takes the letter
	user    string
}

// Start runs a server until the test ends. It takes the password p@ss of every user.
func Start(t *testing.T, address string, change func(*smtp.Server)) *Server {
	t.Helper()
	s := &Server{t: t}
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{server: s}, nil }))
	server.Domain, server.AllowInsecureAuth = "mx.example", true
	server.ErrorLog = logger{}
	if change != nil {
		change(server)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	must.NoError(t, err)
	s.Address = ln.Addr().String()
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(ln) }() // ends with Close
	t.Cleanup(func() { _ = server.Close(); <-done })
	return s
}

type logger struct{}

func (logger) Printf(string, ...any) {}
func (logger) Println(...any)        {}

// Letters gives the letters that the server took, in their order.
func (s *Server) Letters() []Letter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.letters)
}

// Refuse makes the server answer RCPT TO with an error; nil: it takes letters again.
func (s *Server) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = err
}

// User is the name that last signed in.
func (s *Server) User() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.user
}

type session struct {
	server *Server
	to     string
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != "p@ss" {
			return errors.New("wrong")
		}
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		s.server.user = user
		return nil
	}), nil
}
func (s *session) Mail(string, *smtp.MailOptions) error { return nil }
func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	return s.server.refuse
}
func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.letters = append(s.server.letters, Letter{s.to, m.Header, string(body), string(raw)})
	return nil
}
func (*session) Reset()        {}
func (*session) Logout() error { return nil }
