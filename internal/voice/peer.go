package voice

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
	"golang.org/x/time/rate"
)

// Line carries messages to a browser and back. Both calls end with their context,
// and with the connection.
type Line interface {
	Read(ctx context.Context) (Message, error)
	Write(ctx context.Context, m Message) error
}

// Message is a message over a line, by its type.
//
//	offer    ours, with mic: the media line that waits for a microphone, if one does
//	answer   theirs
//	peers    ours: the people in the room, whenever they change
//	speaking ours: the people that are heard just now
//	invite   theirs: lets a watching person speak (peer); dismiss takes it back
//	end      ours, the last one: why; again asks for a fresh connection
type Message struct {
	Type     string   `json:"type"`
	SDP      string   `json:"sdp,omitempty"`
	Mic      string   `json:"mic,omitempty"`
	You      string   `json:"you,omitempty"`
	Peer     string   `json:"peer,omitempty"`
	Peers    []Person `json:"peers,omitempty"`
	Speaking []string `json:"speaking"`
	Why      string   `json:"why,omitempty"`
}

// Person is a person in the room, as all others are told.
type Person struct {
	ID      string `json:"id"` // of this connection; a stream of theirs has it as its id
	Label   string `json:"label"`
	Watches bool   `json:"watches"`
	Speaks  bool   `json:"speaks"` // may, whether they do or not
}

// Guest is a person that comes in.
type Guest struct {
	// Account is the one whose session it is.
	Account string
	// Key is one person's: a person that comes again takes the place of the older connection.
	Key   string
	Label string
	// Watches: they are heard only while a person that takes part lets them.
	Watches bool
}

// peer is one browser in a room. The fields from mic on belong to the room's lock.
type peer struct {
	Guest
	id     string
	pc     *webrtc.PeerConnection
	out    chan Message
	cancel context.CancelCauseFunc
	speaks atomic.Bool  // their sound is passed on
	loud   atomic.Int64 // when they were heard last, in Unix ms

	mic     *webrtc.TrackLocalStaticRTP // the sound of theirs that others are sent; nil until it comes
	uplink  *webrtc.RTPTransceiver      // nil until they may speak for the first time
	senders map[string]*webrtc.RTPSender
	lines   int
	dirty   bool // an offer is due once the one under way is answered
	// unanswered ends a browser that does not answer the offer under way.
	unanswered *time.Timer
	answerTime time.Duration
}

// endError carries the last word to a person.
type endError struct{ why string }

func (e endError) Error() string { return e.why }

// Replaced is told to a browser whose person came in by another one. Only browsers
// compare these words.
const (
	Replaced = "replaced"
	again    = "again"
)

// Join lets a guest into the room until ctx ends, the line breaks, or the room
// does; the last word of ctx's cause is told if it is an End.
func (s *Server) Join(ctx context.Context, name string, g Guest, line Line) error {
	r, err := s.enterRoom(g.Account, name)
	if err != nil {
		return err
	}
	defer s.leaveRoom(g.Account, name, r)
	pc, err := s.api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return fmt.Errorf("open a connection: %w", err)
	}
	defer func() { _ = pc.Close() }() // nothing is left to say
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &peer{
		Guest: g, id: uuid.NewString(), pc: pc, out: make(chan Message, 64), cancel: cancel, senders: map[string]*webrtc.RTPSender{},
		answerTime: s.answerTime,
	}
	p.speaks.Store(!g.Watches)
	p.unanswered = time.AfterFunc(p.answerTime, func() { cancel(errNoAnswer) })
	p.unanswered.Stop() // until there is an offer
	defer p.unanswered.Stop()
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateFailed {
			cancel(endError{again})
		}
	})
	pc.OnTrack(func(t *webrtc.TrackRemote, recv *webrtc.RTPReceiver) { r.heard(p, t, recv) })

	// Reading lasts until the last word is sent: ending a read breaks the line.
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	read := make(chan struct{})
	go func() {
		defer close(read)
		cancel(r.listen(reading, p, line))
	}()
	if err := r.addPeer(p); err != nil {
		cancel(err)
	}
	p.writeMessages(ctx, line)
	r.remove(p)
	stop()
	<-read
	if cause := context.Cause(ctx); errors.As(cause, new(endError)) || errors.Is(cause, context.Canceled) || errors.Is(cause, io.EOF) {
		return nil
	}
	return context.Cause(ctx)
}

var errNoAnswer = errors.New("the browser answers no offer")

// End is a cause to end a context of Join with: the browser is told why.
func End(why string) error { return endError{why} }

const (
	// writeTime bounds one message to a browser.
	writeTime = 10 * time.Second
	// A browser may send so many messages in such a time.
	maxMessages, messagesIn = 100, 10 * time.Second
)

// writeMessages sends messages as they come until ctx ends, and then the last word.
func (p *peer) writeMessages(ctx context.Context, line Line) {
	send := func(m Message) error {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
		defer cancel()
		return line.Write(short, m)
	}
	for {
		select {
		case <-ctx.Done():
			var last endError
			if errors.As(context.Cause(ctx), &last) {
				_ = send(Message{Type: "end", Why: last.why}) // or they are gone
			}
			return
		case m := <-p.out:
			if err := send(m); err != nil {
				p.cancel(err)
			}
		}
	}
}

// queueMessage never waits: a peer that does not read counts as gone.
func (p *peer) queueMessage(m Message) {
	select {
	case p.out <- m:
	default:
		p.cancel(errors.New("the browser does not read"))
	}
}

func (r *room) listen(ctx context.Context, p *peer, line Line) error {
	said, since := 0, time.Now()
	for {
		m, err := line.Read(ctx)
		if err != nil {
			return err
		}
		if time.Since(since) > messagesIn {
			said, since = 0, time.Now()
		}
		if said++; said > maxMessages {
			return errors.New("the browser sends too much")
		}
		switch m.Type {
		case "answer":
			err = r.answered(p, m.SDP)
		case "invite":
			err = r.let(p, m.Peer, true)
		case "dismiss":
			err = r.let(p, m.Peer, false)
		}
		if err != nil {
			return err
		}
	}
}

const (
	// A browser may send so many packets a second: opus has 50 of some 100 bytes. What a
	// network or a busy machine held back comes at once.
	maxPackets = 120
	maxAtOnce  = 5 * maxPackets
	maxPayload = 1000
	// quietBelow is a level in -dBov that counts as silence.
	quietBelow = 50
)

// allowance bounds the packets of one browser.
func allowance() *rate.Limiter { return rate.NewLimiter(maxPackets, maxAtOnce) }

// heard passes on a browser's sound, until it ends.
func (r *room) heard(p *peer, t *webrtc.TrackRemote, recv *webrtc.RTPReceiver) {
	mic, err := webrtc.NewTrackLocalStaticRTP(t.Codec().RTPCodecCapability, "mic", p.id)
	if err != nil {
		p.cancel(fmt.Errorf("pass a microphone on: %w", err))
		return
	}
	level := uint8(0)
	for _, h := range recv.GetParameters().HeaderExtensions {
		if h.URI == levelURI {
			level = uint8(h.ID)
		}
	}
	r.mu.Lock()
	p.mic = mic
	r.sync()
	r.mu.Unlock()
	may := allowance()
	for {
		packet, _, err := t.ReadRTP()
		if err != nil {
			return
		}
		if !may.Allow() || len(packet.Payload) > maxPayload || !p.speaks.Load() {
			continue
		}
		var a rtp.AudioLevelExtension
		if b := packet.GetExtension(level); level != 0 && b != nil && a.Unmarshal(b) == nil && a.Level < quietBelow {
			p.loud.Store(time.Now().UnixMilli())
		}
		packet.Extension, packet.Extensions, packet.CSRC = false, nil, nil
		if err := mic.WriteRTP(packet); err != nil && !errors.Is(err, io.ErrClosedPipe) {
			return
		}
	}
}
