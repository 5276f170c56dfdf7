package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"humanqa/eventstore/node/store"
	"humanqa/internal/strangers"
)

const (
	// maxMessage is more than any append may carry.
	maxMessage = store.MaxMessage
	// maxSocketPath is the longest path that fits into a sockaddr_un everywhere.
	maxSocketPath = 103

	// maxCalls bounds the calls of one connection, and with it the appends that
	// wait in memory; the client's further calls wait on its side. maxCallsTLS is that bound
	// at the TLS address.
	maxCalls    = 4096
	maxCallsTLS = 64
	// maxHeaders bounds the headers of a call at the TLS address.
	maxHeaders = 32 << 10

	window     = 1 << 20
	connWindow = 4 << 20
	ioBuffer   = 64 << 10

	// callWorkers is the number of goroutines that are kept for calls, with the stacks
	// that calls have grown; a new goroutine grows its own. A subscription keeps one
	// busy. Calls that find none free get a goroutine of their own.
	callWorkers = 32

	// A connection to the TLS address is a stranger's until one of its calls has a password.
	// strangerBytes has room for a handshake, and for the calls that a client makes before it
	// signs in.
	maxStrangers  = 128
	strangerBytes = 128 << 10
	strangerTime  = 10 * time.Second

	// refusalWait bounds how long each further message of a refused append is awaited, and
	// refusalTime how long all of them are.
	refusalWait = time.Second
	refusalTime = 30 * time.Second
)

// endpoint is one address the node serves.
type endpoint struct {
	listener net.Listener
	server   *grpc.Server
	address  string
	secure   bool
}

// serve returns when the endpoint is closed, which may be before.
func (e *endpoint) serve(log logrus.FieldLogger) {
	if err := e.server.Serve(e.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		log.WithError(err).WithField("address", e.address).Error("the event store node stopped listening")
	}
}

func (e *endpoint) close() {
	e.server.Stop() // closes the listener too, and a unix listener its path
	_ = e.listener.Close()
}

// connectionString is what a client is given to reach a TCP address; empty for
// a socket.
func (e *endpoint) connectionString(caFile string) string {
	switch {
	case e.secure:
		// Escaped as a path, which leaves slashes as they are: some clients don't decode escapes.
		return "esdb://" + e.address + "?tlsCaFile=" + (&url.URL{Path: caFile}).EscapedPath()
	case e.listener.Addr().Network() == "tcp":
		return "esdb://" + e.address + "?tls=false"
	}
	return ""
}

// listen opens every configured address; on an error none stays open.
func (n *Node) listen(ctx context.Context) (open []*endpoint, err error) {
	defer func() {
		if err != nil {
			for _, e := range open {
				e.close()
			}
			open = nil
		}
	}()
	if path := n.config.Socket; path != "" {
		l, err := listenSocket(ctx, path)
		if err != nil {
			return open, err
		}
		open = append(open, &endpoint{listener: l, server: n.newServer(""), address: "unix:" + path})
	}
	if address := n.config.InsecureListen; address != "" {
		if err := requireLoopback(address); err != nil {
			return open, err
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return open, fmt.Errorf("listen: %w", err)
		}
		open = append(open, n.overTCP(l, hostOf(address), nil))
	}
	if address := n.config.Listen; address != "" {
		identity, err := loadIdentity(n.config.CertDir, address)
		if err != nil {
			return open, err
		}
		n.identity = identity
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return open, fmt.Errorf("listen: %w", err)
		}
		open = append(open, n.overTCP(l, hostOf(address), identity))
	}
	return open, nil
}

// overTCP serves a TCP listener; with an identity over TLS and for a password.
// TLS is begun behind the accept, since the protocol inside is known only then.
func (n *Node) overTCP(l net.Listener, host string, identity *identityFile) *endpoint {
	e := &endpoint{listener: l, address: l.Addr().String(), secure: identity != nil}
	if host != "" {
		e.address = net.JoinHostPort(host, portOf(l.Addr()))
	}
	if identity == nil {
		e.server = n.newServer(host, grpc.Creds(n.newHandshake(nil)))
		return e
	}
	e.listener = &strangers.Listener{Listener: l, Most: maxStrangers, Bytes: strangerBytes, Time: strangerTime}
	e.server = n.newServer(host,
		grpc.Creds(n.newHandshake(&tls.Config{
			Certificates: []tls.Certificate{identity.certificate}, MinVersion: tls.VersionTLS12,
			NextProtos: []string{"h2", "http/1.1"},
		})),
		grpc.InTapHandle(identity.identify),
		grpc.ChainUnaryInterceptor(identity.unary),
		grpc.ChainStreamInterceptor(identity.stream),
		grpc.MaxConcurrentStreams(maxCallsTLS),
		grpc.MaxHeaderListSize(maxHeaders),
	)
	return e
}

// advertised is the TLS address as other nodes tell it to clients; empty where it names no
// host or no port.
func advertised(listen string) string {
	if _, port, err := net.SplitHostPort(listen); err != nil || port == "0" || hostOf(listen) == "" {
		return ""
	}
	return listen
}

func portOf(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return strconv.Itoa(tcp.Port)
	}
	return ""
}

// listenSocket replaces a socket left by a node that was killed, but not one
// that is still served.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("the socket path is longer than %d bytes: %s", maxSocketPath, path)
	}
	dialer := net.Dialer{Timeout: time.Second}
	if conn, err := dialer.DialContext(ctx, "unix", path); err == nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the socket is in use: %s", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove a stale socket: %w", err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	// The directory is the service's own (0700), so no other user connects before this.
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("protect the socket: %w", err)
	}
	return l, nil
}

func requireLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("the insecure address: %w", err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("without TLS only a loopback address is served, not %s", address)
}

// newServer makes a server that calls itself host. What the options have comes before a
// call's work, and in place of the default.
func (n *Node) newServer(host string, options ...grpc.ServerOption) *grpc.Server {
	server := grpc.NewServer(slices.Concat([]grpc.ServerOption{
		grpc.ChainUnaryInterceptor(n.recoverUnary),
		grpc.ChainStreamInterceptor(n.recoverStream, refuseAfterTheLastMessage),
		grpc.ForceServerCodecV2(newWireCodec()),
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.MaxSendMsgSize(maxMessage),
		grpc.MaxConcurrentStreams(maxCalls),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(connWindow),
		grpc.ReadBufferSize(ioBuffer),
		grpc.WriteBufferSize(ioBuffer),
		grpc.ConnectionTimeout(handshakeTime),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(callWorkers),
		// Clients ping as often as they are set to, also without calls. A ping costs less
		// than a call, and zero would mean five minutes.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Nanosecond, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	}, options, []grpc.ServerOption{grpc.ChainUnaryInterceptor(n.termUnary), grpc.ChainStreamInterceptor(n.termStream)})...)
	n.register(server, host)
	return server
}

func (n *Node) recoverUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	defer n.recovered(info.FullMethod, &err)
	return handler(ctx, req)
}

func (n *Node) recoverStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer n.recovered(info.FullMethod, &err)
	return handler(srv, stream)
}

// refuseAfterTheLastMessage ends a failed append only when its client has sent
// everything. If the answer came while the client still sends, its Send would fail with
// io.EOF, and the official Go client would report that instead of the reason.
func refuseAfterTheLastMessage(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, stream)
	if err == nil || !info.IsClientStream || info.IsServerStream {
		return err
	}
	rest, silent, all := make(chan struct{}), time.NewTimer(refusalWait), time.NewTimer(refusalTime)
	defer silent.Stop()
	defer all.Stop()
	go func() { // ends with the call, which is cancelled when this returns
		defer close(rest)
		for stream.RecvMsg(new(streams.AppendReq)) == nil {
			silent.Reset(refusalWait)
		}
	}()
	select {
	case <-rest:
	case <-silent.C:
	case <-all.C:
	}
	return err
}

func (n *Node) recovered(method string, err *error) {
	if p := recover(); p != nil {
		n.log.WithFields(logrus.Fields{"method": method, "panic": p, "stack": string(debug.Stack())}).Error("panic in the event store node")
		*err = status.Error(codes.Internal, "internal error")
	}
}

// Addr is a gRPC target of the node: the unix socket if there is one, else the
// first TCP address. It suits esdb.Configuration.Address.
func (n *Node) Addr() string { return n.endpoints[0].address }

// ConnectionStrings gives clients the addresses of the node over TCP, the TLS address
// first; none if it listens on its socket only. esdb:// has no form for a socket: there
// set esdb.Configuration.Address to Addr. A TLS address comes without its password.
func (n *Node) ConnectionStrings() []string {
	var secure, open []string
	for _, e := range n.endpoints {
		switch {
		case e.secure:
			secure = append(secure, e.connectionString(n.identity.caFile))
		case e.listener.Addr().Network() == "tcp":
			open = append(open, e.connectionString(""))
		}
	}
	return append(secure, open...)
}
