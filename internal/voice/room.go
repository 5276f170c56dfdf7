package voice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pion/webrtc/v4"

	"humanqa/internal/backoff"
)

// room is the people that talk to each other. Its lock is held while connections are changed,
// and never while anything is sent.
type room struct {
	places int // the server's: of the people who are in, or coming

	mu    sync.Mutex
	peers []*peer // in the order they came
	end   func()  // called when the last one has left
}

func newRoom() *room {
	alive, end := context.WithCancel(context.Background())
	r := &room{end: end}
	go r.speakers(alive)
	return r
}

// endCalls sends all away.
func (r *room) endCalls(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.peers {
		p.cancel(endError{why})
	}
}

// addPeer brings a peer in, in place of the same person's older one if there is one.
func (r *room) addPeer(p *peer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, older := range r.peers {
		if older.Key == p.Key {
			older.cancel(endError{Replaced})
		}
	}
	r.peers = append(r.peers, p)
	if p.speaks.Load() {
		if err := p.openTrack(); err != nil {
			return err
		}
	}
	r.sync()
	r.tellMembers()
	return nil
}

func (r *room) remove(p *peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers = slices.DeleteFunc(r.peers, func(q *peer) bool { return q == p })
	r.sync()
	r.tellMembers()
}

// openTrack makes a line for the microphone.
func (p *peer) openTrack() (err error) {
	if p.uplink == nil {
		p.uplink, err = p.pc.AddTransceiverFromKind(webrtc.RTPCodecTypeAudio,
			webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly})
		p.lines++
		p.dirty = true
	}
	return err
}

// let has a person that takes part let a watching person speak, or no more. A person
// that has gone meanwhile is passed over.
func (r *room) let(by *peer, id string, speak bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if by.Watches {
		return errors.New("a viewer cannot invite speakers")
	}
	for _, p := range r.peers {
		if p.id != id || !p.Watches || p.speaks.Load() == speak {
			continue
		}
		p.speaks.Store(speak)
		if speak {
			if err := p.openTrack(); err != nil {
				p.cancel(err)
			}
		}
		r.sync()
		r.tellMembers()
	}
	return nil
}

// sync sends each peer the voices that it is to hear. The caller holds the lock.
func (r *room) sync() {
	there := map[string]*peer{}
	for _, q := range r.peers {
		if q.mic != nil && q.speaks.Load() {
			there[q.id] = q
		}
	}
	for _, p := range r.peers {
		for id, sender := range p.senders {
			if there[id] == nil {
				_ = p.pc.RemoveTrack(sender) // fails where the connection has ended
				delete(p.senders, id)
				p.dirty = true
			}
		}
		for _, q := range r.peers {
			if there[q.id] == nil || q == p || p.senders[q.id] != nil {
				continue
			}
			if err := p.listenTo(q); err != nil {
				p.cancel(fmt.Errorf("send a microphone: %w", err))
				break
			}
		}
		r.offer(p)
	}
}

// listenTo adds another peer's sound to those that a peer is sent. A track that is added
// otherwise would ask for the peer's microphone once more.
func (p *peer) listenTo(q *peer) error {
	if p.lines >= maxLines {
		p.cancel(endError{again})
		return nil
	}
	t, err := p.pc.AddTransceiverFromTrack(q.mic, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly})
	if err != nil {
		return err
	}
	sender := t.Sender()
	p.senders[q.id], p.dirty = sender, true
	p.lines++
	go func() { // reports count only if they are read
		b := make([]byte, 1500)
		for {
			if _, _, err := sender.Read(b); err != nil {
				return
			}
		}
	}()
	return nil
}

// gatherTime bounds the look for our own addresses, which are known.
const gatherTime = 10 * time.Second

// offer makes an offer of the changes, unless the last offer is not answered yet. The
// caller holds the lock.
func (r *room) offer(p *peer) {
	if !p.dirty || p.pc.SignalingState() != webrtc.SignalingStateStable {
		return
	}
	p.dirty = false
	offer, err := p.pc.CreateOffer(nil)
	if err == nil {
		gathered := webrtc.GatheringCompletePromise(p.pc)
		if err = p.pc.SetLocalDescription(offer); err == nil {
			select {
			case <-gathered:
			case <-time.After(gatherTime):
				err = errors.New("no address of our own was found")
			}
		}
	}
	if err != nil {
		p.cancel(fmt.Errorf("make an offer: %w", err))
		return
	}
	m := Message{Type: "offer", SDP: p.pc.LocalDescription().SDP}
	if p.uplink != nil {
		m.Mic = p.uplink.Mid()
	}
	p.unanswered.Reset(p.answerTime)
	p.queueMessage(m)
}

// answered takes a browser's answer, without the addresses in it.
func (r *room) answered(p *peer, sdp string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.pc.SignalingState() != webrtc.SignalingStateHaveLocalOffer {
		return errors.New("the browser answers what was not asked")
	}
	if err := p.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: withoutAddresses(sdp)}); err != nil {
		return fmt.Errorf("take an answer: %w", err)
	}
	p.unanswered.Stop()
	r.offer(p)
	return nil
}

// withoutAddresses removes the browser's addresses from an answer: the browser calls us,
// and we call no peer. A browser that is ICE-lite itself would not call.
func withoutAddresses(sdp string) string {
	var kept strings.Builder
	for line := range strings.Lines(sdp) {
		if !strings.HasPrefix(line, "a=candidate") && !strings.HasPrefix(line, "a=remote-candidates") &&
			!strings.HasPrefix(line, "a=ice-lite") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// tellMembers names the people in the room. The caller holds the lock.
func (r *room) tellMembers() {
	all := []Person{}
	for _, p := range r.peers {
		all = append(all, Person{ID: p.id, Label: p.Label, Watches: p.Watches, Speaks: p.speaks.Load()})
	}
	for _, p := range r.peers {
		p.queueMessage(Message{Type: "peers", You: p.id, Peers: all})
	}
}

const (
	// A person that was heard so lately speaks; all are told so often, if it changed.
	heardWithin = 500 * time.Millisecond
	speakEvery  = 250 * time.Millisecond
)

// speakers names the people that speak, while there is a room.
func (r *room) speakers(ctx context.Context) {
	var told []string
	for backoff.Wait(ctx, speakEvery) == nil {
		r.mu.Lock()
		var heard []string
		for _, p := range r.peers {
			if p.speaks.Load() && time.Since(time.UnixMilli(p.loud.Load())) < heardWithin {
				heard = append(heard, p.id)
			}
		}
		if !slices.Equal(heard, told) {
			told = heard
			for _, p := range r.peers {
				p.queueMessage(Message{Type: "speaking", Speaking: heard})
			}
		}
		r.mu.Unlock()
	}
}
