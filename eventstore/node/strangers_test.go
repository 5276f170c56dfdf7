package node_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// guarded is a node with a TLS address, and a client's settings for it.
func guarded(t *testing.T) (node.Config, *esdb.Configuration) {
	t.Helper()
	c := node.Config{DSN: pgtest.NewDSN(t), Listen: "127.0.0.1:0", CertDir: filepath.Join(t.TempDir(), "certs"), Log: quiet()}
	n := start(t, c)
	config, err := esdb.ParseConnectionString(n.ConnectionStrings()[0])
	must.NoError(t, err)
	config.Logger, config.Username, config.Password = nil, node.Username, n.GeneratedPassword()
	return c, config
}

// stranger speaks HTTP/2 to the TLS address, as no client's library would.
type stranger struct {
	*testing.T
	*http2.Framer
	conn net.Conn
}

func newStranger(t *testing.T, c node.Config, address string) *stranger {
	t.Helper()
	ca, err := os.ReadFile(filepath.Join(c.CertDir, "ca.crt"))
	must.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	must.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the node may have closed it
	_, err = io.WriteString(conn, http2.ClientPreface)
	must.NoError(t, err)
	s := &stranger{t, http2.NewFramer(conn, conn), conn}
	must.NoError(t, s.WriteSettings())
	return s
}

// call begins a call whose message is announced with 16 MiB.
func (s *stranger) call(id uint32, method string) error {
	var block bytes.Buffer
	headers := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", "/event_store.client.streams.Streams/" + method},
		{":authority", "node"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		must.NoError(s, headers.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
	}
	if err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	return s.WriteData(id, false, []byte{0, 1, 0, 0, 0})
}

// The node takes no message of a stranger: it ends the connection. What counts is what the
// connection took, most of which the kernel holds.
func TestStrangersMakeTheNodeHoldNothing(t *testing.T) {
	t.Parallel()
	const calls, each, much = 64, 512 << 10, 64 * 512 << 10
	c, config := guarded(t)
	client := connect(t, config)
	took := make(chan int, 4)
	for _, method := range []string{"Append", "BatchAppend", "Delete", "Read"} {
		s := newStranger(t, c, config.Address)
		go func() { _, _ = io.Copy(io.Discard, s.conn) }() // ends with the connection
		go func() {
			part := make([]byte, 16<<10)
			sent, err := 0, error(nil)
			for i := uint32(0); i < calls && err == nil; i++ {
				err = s.call(2*i+1, method)
			}
			for ; sent < much && err == nil; sent += len(part) {
				err = s.WriteData(uint32(2*(sent/len(part)%calls)+1), false, part)
			}
			took <- sent
		}()
	}
	for range 4 {
		large := event() // more than a stranger may send
		large.Data = make([]byte, each)
		_, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, large)
		must.NoError(t, err)
		if sent := <-took; sent >= much {
			t.Errorf("the node took %d bytes of a stranger, which is all that was sent", sent)
		}
	}
	if events, err := readAll(t, client); err != nil || len(events) != 4 {
		t.Errorf("the client reads %d events, %v", len(events), err)
	}
}

// The node asks a silent connection by a ping after half a minute. That is too late.
func TestAConnectionWithoutAPasswordEndsSoon(t *testing.T) {
	t.Parallel()
	c, config := guarded(t)
	s := newStranger(t, c, config.Address)
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			break
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if most, _ := frame.Value(http2.SettingMaxConcurrentStreams); !frame.IsAck() && most != 64 {
				t.Errorf("a connection may have %d calls at a time", most)
			}
		case *http2.PingFrame:
			t.Fatal("the connection is kept")
		}
	}
}

func TestTheEndOfTheReadersPasswordEndsTheReadersCalls(t *testing.T) {
	t.Parallel()
	c, own := guarded(t)
	address, err := node.MakeReader(c.CertDir, own.Address)
	must.NoError(t, err)
	config, err := esdb.ParseConnectionString(address)
	must.NoError(t, err)
	config.Logger = nil
	subscribe := func(config *esdb.Configuration) *esdb.Subscription {
		t.Helper()
		sub, err := connect(t, config).SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{})
		must.NoError(t, err)
		return sub
	}
	readers, others := subscribe(config), subscribe(own)
	if was, err := node.DropReader(c.CertDir); err != nil || !was {
		t.Fatalf("dropped %t, %v", was, err)
	}
	for {
		if dropped := readers.Recv().SubscriptionDropped; dropped != nil {
			if status.Code(dropped.Error) != codes.Unauthenticated {
				t.Errorf("the reader's subscription ended with %v", dropped.Error)
			}
			break
		}
	}
	_, err = connect(t, own).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event())
	must.NoError(t, err)
	for {
		seen := others.Recv()
		if seen.SubscriptionDropped != nil {
			t.Fatal(seen.SubscriptionDropped.Error)
		}
		if seen.EventAppeared != nil {
			break
		}
	}
}

// Clients of other languages may ping once a second, or more often.
func TestAClientMayPingAsOftenAsItLikes(t *testing.T) {
	t.Parallel()
	const pings = 100
	c, config := guarded(t)
	s := newStranger(t, c, config.Address)
	for range pings {
		must.NoError(t, s.WritePing(false, [8]byte{}))
	}
	for acks := 0; acks < pings; {
		frame, err := s.ReadFrame()
		must.NoError(t, err)
		switch frame := frame.(type) {
		case *http2.GoAwayFrame:
			t.Fatalf("the node ends the connection after %d answers: %s", acks, frame.DebugData())
		case *http2.PingFrame:
			if frame.IsAck() {
				acks++
			}
		}
	}
}
