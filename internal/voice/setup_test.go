package voice

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

func opened(t testing.TB) *Server {
	t.Helper()
	s, err := Listen(t.Context(), Config{Addr: "127.0.0.1:0", answerTime: eventually.Patience})
	must.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// pipe is a line within the process.
type pipe struct{ up, down chan Message }

func (p pipe) Read(ctx context.Context) (Message, error) {
	select {
	case m, open := <-p.up:
		if !open {
			return Message{}, io.EOF
		}
		return m, nil
	case <-ctx.Done():
		return Message{}, context.Cause(ctx)
	}
}

func (p pipe) Write(ctx context.Context, m Message) error {
	select {
	case p.down <- m:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// browser is a headless one: it answers offers, talks, and counts what it hears.
type browser struct {
	t     testing.TB
	line  pipe
	pc    *webrtc.PeerConnection
	mic   *webrtc.TrackLocalStaticRTP
	over  chan error   // of Join
	ended atomic.Value // the same in words, for a failure
	hush  context.CancelFunc
	tries atomic.Int32 // offers that were answered

	mu     sync.Mutex
	people []Person
	you    string
	heard  map[string]*stream // by the speaker
	loud   map[string]bool    // who was told to speak
	last   string             // why it ended
	sdp    []string           // what came
}

// stream is what is heard of one speaker.
type stream struct{ packets, lost, strange int }

// joins brings a browser into a room. It talks from the start if it may.
func joins(t testing.TB, s *Server, room string, g Guest) *browser {
	t.Helper()
	var media webrtc.MediaEngine
	must.NoError(t, media.RegisterDefaultCodecs())
	must.NoError(t, media.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: levelURI}, webrtc.RTPCodecTypeAudio))
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(&media), webrtc.WithSettingEngine(func() (e webrtc.SettingEngine) {
		e.SetIncludeLoopbackCandidate(true)
		if strings.HasPrefix(g.Key, "tcp") { // a network that lets no UDP through
			e.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeTCP4})
		}
		e.SetICEMaxBindingRequests(math.MaxUint16) // the library gives up after seven in 1.4 s, which a browser does not
		e.SetICETimeouts(eventually.Patience, eventually.Patience, 2*time.Second)
		e.LoggerFactory = quiet
		return e
	}())).NewPeerConnection(webrtc.Configuration{})
	must.NoError(t, err)
	b := &browser{t: t, line: pipe{make(chan Message, 64), make(chan Message, 64)}, pc: pc, over: make(chan error, 1), heard: map[string]*stream{}, loud: map[string]bool{}}
	b.mic, err = webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}, "mic", "mine")
	must.NoError(t, err)
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { b.listens(track) })
	ctx, hush := context.WithCancel(context.Background())
	b.hush = hush
	go func() {
		err := s.Join(ctx, room, g, b.line)
		b.ended.Store(fmt.Sprint("has left: ", err))
		b.over <- err
	}()
	go b.follows(ctx)
	t.Cleanup(func() {
		b.leaves()
		_ = pc.Close()
	})
	return b
}

func (b *browser) leaves() { b.hush() }

// listens counts a stream. A packet says whose it is.
func (b *browser) listens(track *webrtc.TrackRemote) {
	next, begun := uint16(0), false
	for {
		p, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		b.mu.Lock()
		of := b.heard[track.StreamID()]
		if of == nil {
			of = new(stream)
			b.heard[track.StreamID()] = of
		}
		of.packets++
		if begun && p.SequenceNumber != next {
			of.lost += int(p.SequenceNumber - next)
		}
		if p.Extension {
			of.strange++
		}
		next, begun = p.SequenceNumber+1, true
		b.mu.Unlock()
	}
}

func (b *browser) follows(ctx context.Context) {
	for {
		var m Message
		select {
		case m = <-b.line.down:
		case <-ctx.Done():
			return
		}
		b.mu.Lock()
		switch m.Type {
		case "peers":
			b.people, b.you = m.Peers, m.You
		case "speaking":
			for _, id := range m.Speaking {
				b.loud[id] = true
			}
		case "end":
			b.last = m.Why
		case "offer":
			b.sdp = append(b.sdp, m.SDP)
		}
		b.mu.Unlock()
		if m.Type == "offer" {
			if err := b.answers(ctx, m); err != nil && ctx.Err() == nil {
				b.t.Errorf("answer: %v", err)
			}
		}
	}
}

func (b *browser) answers(ctx context.Context, m Message) error {
	if err := b.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: m.SDP}); err != nil {
		return err
	}
	for _, t := range b.pc.GetTransceivers() {
		if t.Mid() == m.Mic && m.Mic != "" && t.Sender() == nil {
			sender, err := b.pc.AddTrack(b.mic)
			if err != nil {
				return err
			}
			go b.talks(ctx, sender)
		}
	}
	answer, err := b.pc.CreateAnswer(nil)
	if err != nil {
		return err
	}
	if err := b.pc.SetLocalDescription(answer); err != nil {
		return err
	}
	b.line.up <- Message{Type: "answer", SDP: b.pc.LocalDescription().SDP}
	b.tries.Add(1)
	return nil
}

// talks sends a packet each 20 ms, as opus does, loud.
func (b *browser) talks(ctx context.Context, sender *webrtc.RTPSender) {
	go func() {
		for buf := make([]byte, 1500); ; {
			if _, _, err := sender.Read(buf); err != nil {
				return
			}
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	level, _ := rtp.AudioLevelExtension{Level: 20, Voice: true}.Marshal()
	for n := uint32(0); ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p := &rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: uint16(n), Timestamp: n * 960}, Payload: make([]byte, 80)}
		if ext := sender.GetParameters().HeaderExtensions; len(ext) > 0 {
			_ = p.SetExtension(uint8(ext[0].ID), level) // one byte fits
		}
		_ = b.mic.WriteRTP(p) // before it is connected it goes nowhere
	}
}

// hears waits until the browser heard so many packets of each of them.
func (b *browser) hears(packets int, of ...*browser) {
	b.t.Helper()
	for _, other := range of {
		eventually.Within(b.t, eventually.Patience, func() error {
			id := other.id()
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.ended.Load() != nil || other.ended.Load() != nil {
				b.t.Fatalf("%s hears no more of %s", b.state(), other.state())
			}
			if s := b.heard[id]; id == "" || s == nil || s.packets < packets {
				return fmt.Errorf("a microphone is not heard: %s hears %s", b.state(), other.state())
			}
			return nil
		})
	}
}

// state says for a failure how the connection is.
func (b *browser) state() string {
	return fmt.Sprintf("a browser (%s, %v)", b.pc.ConnectionState(), b.ended.Load())
}

func (b *browser) id() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.you
}

func (b *browser) sees(people int) []Person {
	b.t.Helper()
	eventually.True(b.t, fmt.Sprintf("%d people are seen", people), func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.people) == people
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.people
}

// fill has ten browsers in one room, each of which hears the nine others.
func fill(t testing.TB, s *Server, packets int) (all []*browser) {
	t.Helper()
	for n := range 10 {
		all = append(all, joins(t, s, "room", Guest{Key: fmt.Sprint(n), Label: fmt.Sprint("Checker ", n+1)}))
	}
	for i, b := range all {
		for j, other := range all {
			if i != j {
				b.hears(packets, other)
			}
		}
	}
	return all
}
