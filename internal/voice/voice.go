// Package voice carries sound between the people in a room. It is a forwarding server
// for audio (an SFU) within the service, for the rooms of sessions.
//
// Every browser has one connection, to this process. It carries its microphone up and
// all other voices down. So no participant learns another one's address. Sound comes
// from here, under a name of its own (Peer), and without the sender's header
// extensions.
//
// This side makes every offer, so two offers never cross. An offer that becomes due
// during another one follows its answer. The server is an ICE-lite agent: it answers
// calls to its one port (UDP, and TCP for networks without it), and it calls no peer.
// It does not even read the addresses that a browser names.
//
// The package stores and decides nothing. A room exists while a person is in it. The
// caller decides about entry and its end. With several processes each has its own
// rooms. Signalling is a WebSocket of the room's page, which ends with its person's
// right to be there.
package voice

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"
)

const (
	// MaxMessage bounds a message of a browser, in bytes: an answer for a full room has
	// some 30 KB.
	MaxMessage = 64 << 10
	// maxPeers bounds a room: ten checkers, and the people that watch.
	maxPeers = 24
	// maxOnServer bounds all rooms together.
	maxOnServer = 400
	// maxOnAccount bounds the rooms of one account.
	maxOnAccount = maxOnServer / 4
	// answerTime is how long a browser may take to answer an offer, and to come back once
	// nothing of it came for half of that.
	answerTime = 30 * time.Second
	// maxLines bounds a connection's media lines, of which each person that came and
	// left used one up; beyond, its browser makes another connection.
	maxLines = 80

	levelURI = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
)

// Config holds the settings of a server.
type Config struct {
	// Addr is where it listens, host:port, by UDP and TCP. Without a host, or with
	// an unspecified one, it is every address that the machine has by then.
	Addr string
	// Public are the addresses by which browsers reach it, where they are others.
	Public []string

	answerTime time.Duration // zero: the constant
}

// Server holds the rooms of a process.
type Server struct {
	api        *webrtc.API
	addr       *net.TCPAddr
	ends       []io.Closer
	answerTime time.Duration

	mu     sync.Mutex
	closed bool
	count  int
	of     map[string]int // places, by account
	rooms  map[string]*room
}

// anyPort is how many of the ports that the kernel offers are tried where any will do: it
// offers what is free for TCP.
const anyPort = 20

// Listen opens the port, for TCP and UDP.
func Listen(ctx context.Context, c Config) (s *Server, err error) {
	_, port, _ := net.SplitHostPort(c.Addr)
	for range anyPort {
		if s, err = listen(ctx, c); port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return s, err
}

func listen(ctx context.Context, c Config) (*Server, error) {
	s := &Server{answerTime: cmp.Or(c.answerTime, answerTime), of: map[string]int{}, rooms: map[string]*room{}}
	var settings webrtc.SettingEngine
	if err := s.openPort(ctx, c, &settings); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	settings.SetLite(true)
	settings.DisableActiveTCP(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetICETimeouts(s.answerTime/2, s.answerTime, 2*time.Second)
	settings.LoggerFactory = quiet
	if len(c.Public) > 0 {
		err := settings.SetICEAddressRewriteRules(webrtc.ICEAddressRewriteRule{
			External: c.Public, AsCandidateType: webrtc.ICECandidateTypeHost, Mode: webrtc.ICEAddressRewriteReplace,
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("voice's public addresses: %w", err), s.Close())
		}
	}
	var media webrtc.MediaEngine
	var registry interceptor.Registry
	err := errors.Join(
		media.RegisterCodec(webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{
				MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1;usedtx=1",
			}, PayloadType: 111,
		}, webrtc.RTPCodecTypeAudio),
		media.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: levelURI}, webrtc.RTPCodecTypeAudio),
		webrtc.ConfigureRTCPReports(&registry),
	)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.api = webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(&media), webrtc.WithInterceptorRegistry(&registry))
	return s, nil
}

// openPort binds the port, TCP first: it says which one, where any will do.
func (s *Server) openPort(ctx context.Context, c Config, settings *webrtc.SettingEngine) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return err
	}
	s.addr, _ = l.Addr().(*net.TCPAddr)
	s.ends = append(s.ends, l)
	tcp := newPort(l)
	settings.SetICETCPMux(tcp)
	s.ends = append(s.ends, tcp)
	families := []ice.NetworkType{ice.NetworkTypeUDP4, ice.NetworkTypeUDP6}
	settings.SetNetworkTypes([]webrtc.NetworkType{
		webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6, webrtc.NetworkTypeTCP4, webrtc.NetworkTypeTCP6,
	})
	if s.addr.IP.IsUnspecified() {
		udp, err := ice.NewMultiUDPMuxFromPort(s.addr.Port, ice.UDPMuxFromPortWithNetworks(families...),
			ice.UDPMuxFromPortWithLogger(quietly))
		if err != nil {
			return fmt.Errorf("listen udp %s: %w", c.Addr, err)
		}
		settings.SetICEUDPMux(udp)
		s.ends = append(s.ends, udp)
		return nil
	}
	conn, err := listen.ListenPacket(ctx, "udp", s.addr.String())
	if err != nil {
		return err
	}
	settings.SetICEUDPMux(webrtc.NewICEUDPMux(quietly, conn.(*net.UDPConn)))
	settings.SetIncludeLoopbackCandidate(s.addr.IP.IsLoopback())
	settings.SetIPFilter(func(ip net.IP) bool { return ip.Equal(s.addr.IP) })
	s.ends = append(s.ends, conn)
	return nil
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.addr }

// Close ends every room, and gives the port back.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	rooms := s.rooms
	s.rooms = map[string]*room{}
	s.mu.Unlock()
	for _, r := range rooms {
		r.endCalls("the service stops")
	}
	var err error
	for _, c := range slices.Backward(s.ends) {
		if failed := c.Close(); failed != nil && !errors.Is(failed, net.ErrClosed) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// enterRoom gives the account's room a place for one more.
func (s *Server) enterRoom(account, name string) (*room, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.rooms[name]
	switch {
	case s.closed:
		return nil, ErrClosed
	case s.count >= maxOnServer, s.of[account] >= maxOnAccount, r != nil && r.places >= maxPeers:
		return nil, ErrFull
	}
	if r == nil {
		r = newRoom()
		s.rooms[name] = r
	}
	r.places++
	s.count++
	s.of[account]++
	return r, nil
}

func (s *Server) leaveRoom(account, name string, r *room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	if s.of[account]--; s.of[account] == 0 {
		delete(s.of, account)
	}
	if r.places--; r.places == 0 {
		r.end()
		if s.rooms[name] == r {
			delete(s.rooms, name)
		}
	}
}

// The refusals of Join.
var (
	ErrClosed = errors.New("the service stops")
	ErrFull   = errors.New("the room is full")
)

// quiet drops the library's own log: it names addresses of people.
var quiet = &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled}

var quietly = quiet.NewLogger("voice")
