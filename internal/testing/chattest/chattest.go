// Package chattest is a stub of the chats: it takes what goes to any of their hosts.
package chattest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"humanqa/internal/chat"
)

// The addresses of a chat of each service. Secret is in each of them, and shown by none.
const (
	Secret  = "canary-of-the-chat"
	Slack   = "https://hooks.slack.com/services/T0/B0/" + Secret + "/a1b2"
	Discord = "https://discord.com/api/webhooks/12/" + Secret + "/c3d4"
	Teams   = "https://prod-01.westeurope.logic.azure.com:443/workflows/0/triggers/manual/paths/invoke?api-version=2016-06-01&sig=" + Secret + "-e5f6"
)

// Message is a request that a chat got.
type Message struct{ Host, Path, Body string }

// Server answers at the hosts of all chats.
type Server struct {
	// Poster posts to the server, whatever the host.
	Poster *chat.Poster

	mu     sync.Mutex
	got    []Message
	answer http.HandlerFunc
}

// Start runs a server until the test ends. It takes every message.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{answer: func(http.ResponseWriter, *http.Request) {}}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a message: %v", err)
		}
		s.mu.Lock()
		s.got = append(s.got, Message{r.Host, r.URL.RequestURI(), string(body)})
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	s.Poster = chat.New()
	trusted, _ := server.Client().Transport.(*http.Transport)
	there := trusted.Clone()
	there.TLSClientConfig.ServerName = "example.com" // as its certificate says
	there.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	s.Poster.Client.Transport = there
	t.Cleanup(there.CloseIdleConnections)
	return s
}

// Answer has the server answer so from now on.
func (s *Server) Answer(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// Status has the server answer with the status, a header's value where a name is given, and a text.
func (s *Server) Status(status int, text string, header ...string) {
	s.Answer(func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // the test's end may have closed it
	})
}

// Messages are those that the server got, in their order.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}
