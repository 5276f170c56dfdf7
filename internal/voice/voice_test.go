package voice

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// The kernel offers ports that are free for TCP. Where any will do, one is found that is free
// for UDP, too, although others have some of those.
func TestAnyPortIsFreeForBoth(t *testing.T) {
	t.Parallel()
	for range 2000 {
		other, err := net.ListenPacket("udp", "127.0.0.1:0") //nolint:noctx // at once
		must.NoError(t, err)
		t.Cleanup(func() { _ = other.Close() }) // nothing was sent
	}
	for range 100 {
		s, err := Listen(t.Context(), Config{Addr: "127.0.0.1:0"})
		must.NoError(t, err)
		must.NoError(t, s.Close())
	}
}

// kernelDrops counts the packets that the kernel has dropped since, because a busy process
// did not fetch them in time. What else is lost was lost by the server. It is 0 where the
// kernel does not tell.
func kernelDrops(t testing.TB) (since func() int) {
	t.Helper()
	const counter = "RcvbufErrors"
	count := func() int {
		text, err := os.ReadFile("/proc/net/snmp")
		if err != nil {
			return 0
		}
		var names []string
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch {
			case fields[0] != "Udp:":
			case names == nil:
				names = fields
			default:
				n, err := strconv.Atoi(fields[slices.Index(names, counter)])
				must.NoError(t, err)
				return n
			}
		}
		return 0
	}
	before := count()
	return func() int { return count() - before }
}

func TestTenInARoomHearEachOther(t *testing.T) {
	t.Parallel()
	dropped := kernelDrops(t)
	s := opened(t)
	all := fill(t, s, 25)
	for i, b := range all {
		eventually.Within(t, eventually.Patience, func() error {
			b.mu.Lock()
			defer b.mu.Unlock()
			if len(b.loud) < 10 {
				return fmt.Errorf("%d sees %d speak: %s", i, len(b.loud), b.state())
			}
			return nil
		})
		b.mu.Lock()
		if len(b.heard) != 9 {
			t.Errorf("%d hears %d others", i, len(b.heard))
		}
		for id, of := range b.heard {
			if of.lost > dropped() || of.strange > 0 || id == b.you {
				t.Errorf("%d hears %s (itself %s): %+v", i, id, b.you, *of)
			}
		}
		// Nobody learns where anybody else is: all addresses are the server's.
		for _, sdp := range b.sdp {
			for line := range strings.Lines(sdp) {
				if strings.HasPrefix(line, "a=candidate") && !strings.Contains(line, fmt.Sprintf(" 127.0.0.1 %d ", s.addr.Port)) {
					t.Errorf("an address of somebody else: %s", line)
				}
			}
		}
		b.mu.Unlock()
	}
	all[0].leaves()
	for _, b := range all[1:] {
		b.sees(9)
	}
	for _, b := range all[1:] {
		b.leaves()
	}
	eventually.True(t, "the room is gone", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.rooms) == 0 && s.count == 0
	})
}

// Ten connect, and what the process has in memory with them and their clients.
func BenchmarkTenInARoom(b *testing.B) {
	for b.Loop() {
		s := opened(b)
		began := time.Now()
		all := fill(b, s, 1)
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-connect")
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/(1<<20), "MB-with-clients")
		for _, each := range all {
			each.leaves()
			_ = each.pc.Close()
		}
		must.NoError(b, s.Close())
	}
}

// Who watches hears, and is heard while somebody who takes part lets them.
func TestWhoWatchesSpeaksWhenInvited(t *testing.T) {
	t.Parallel()
	s := opened(t)
	ann := joins(t, s, "room", Guest{Key: "ann", Label: "Caller"})
	client := joins(t, s, "room", Guest{Key: "client", Label: "The client", Watches: true})
	other := joins(t, s, "room", Guest{Key: "other", Label: "The client", Watches: true})
	client.hears(5, ann)
	ann.sees(3)
	invite := Message{Type: "invite", Peer: client.id()}
	ann.line.up <- invite
	ann.hears(5, client)
	other.hears(5, client)
	ann.line.up <- Message{Type: "dismiss", Peer: client.id()}
	eventually.True(t, "nobody who watches speaks", func() bool {
		ann.mu.Lock()
		defer ann.mu.Unlock()
		for _, p := range ann.people {
			if p.Watches && p.Speaks {
				return false
			}
		}
		return true
	})
	// It goes on sending; nothing of it arrives: what comes after somebody else's
	// packets would have come by then.
	count := func() int {
		other.mu.Lock()
		defer other.mu.Unlock()
		return other.heard[client.id()].packets
	}
	before := count()
	other.mu.Lock()
	anns := other.heard[ann.id()].packets
	other.mu.Unlock()
	other.hears(anns+20, ann)
	if after := count(); after > before+10 { // what was under way
		t.Errorf("%d packets of somebody who may not speak", after-before)
	}
	ann.line.up <- invite
	ann.hears(anns, client)

	other.line.up <- invite // who watches invites nobody
	if err := <-other.over; err == nil || !strings.Contains(err.Error(), "cannot invite") {
		t.Errorf("an invitation by who watches: %v", err)
	}
}

// A network that lets no UDP through is no hindrance.
func TestVoiceGoesByTCP(t *testing.T) {
	t.Parallel()
	s := opened(t)
	ann, bob := joins(t, s, "room", Guest{Key: "tcp ann"}), joins(t, s, "room", Guest{Key: "bob"})
	ann.hears(10, bob)
	bob.hears(10, ann)
	pair, err := ann.pc.SCTP().Transport().ICETransport().GetSelectedCandidatePair()
	if err != nil || pair.Remote.Protocol != webrtc.ICEProtocolTCP || int(pair.Remote.Port) != s.addr.Port {
		t.Errorf("it goes by %v, %v", pair, err)
	}
}

// Somebody who comes again takes the place of their older self; rooms are apart.
func TestWhoComesAgainReplacesThemselves(t *testing.T) {
	t.Parallel()
	s := opened(t)
	first := joins(t, s, "room", Guest{Key: "ann", Label: "Caller"})
	elsewhere := joins(t, s, "another", Guest{Key: "ann", Label: "Caller"})
	first.sees(1)
	second := joins(t, s, "room", Guest{Key: "ann", Label: "Caller"})
	if err := <-first.over; err != nil {
		t.Errorf("the older one ends with %v", err)
	}
	eventually.True(t, "it is told why", func() bool {
		first.mu.Lock()
		defer first.mu.Unlock()
		return first.last == Replaced
	})
	second.sees(1)
	elsewhere.sees(1)
}

// A room holds so many; what is no answer to an offer, too much of it, or too large,
// ends that browser and nobody else.
func TestRoomsAreBounded(t *testing.T) {
	t.Parallel()
	s := opened(t)
	var watchers []*browser
	for n := range maxPeers {
		watchers = append(watchers, joins(t, s, "room", Guest{Key: fmt.Sprint(n), Watches: true}))
	}
	watchers[0].sees(maxPeers)
	if err := <-joins(t, s, "room", Guest{Key: "one more"}).over; !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	watchers[1].line.up <- Message{Type: "answer", SDP: "v=0"}
	if err := <-watchers[1].over; err == nil || !strings.Contains(err.Error(), "was not asked") {
		t.Errorf("an answer to nothing: %v", err)
	}
	flood := watchers[2]
	go func() {
		for range maxMessages + 1 {
			flood.line.up <- Message{Type: "nothing"}
		}
	}()
	if err := <-flood.over; err == nil || !strings.Contains(err.Error(), "too much") {
		t.Errorf("a flood: %v", err)
	}
	ann := joins(t, s, "room", Guest{Key: "ann"})
	watchers[0].hears(1, ann)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-watchers[0].over; err != nil {
		t.Errorf("the end: %v", err)
	}
	if err := <-joins(t, s, "room", Guest{Key: "late"}).over; !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// Where an agent says it is we do not go.
func TestAnAnswersAddressesAreNotRead(t *testing.T) {
	t.Parallel()
	const answer = "v=0\r\na=ice-lite\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=candidate:1 1 udp 2130706431 10.0.0.1 22 typ host\r\na=remote-candidates:1 10.0.0.1 22\r\na=mid:0\r\n"
	if got, want := withoutAddresses(answer), "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without a host it listens wherever the machine is, by one port.
func TestEveryAddressIsServedByOnePort(t *testing.T) {
	t.Parallel()
	s, err := Listen(t.Context(), Config{Addr: ":0", Public: []string{"192.0.2.7"}})
	must.NoError(t, err)
	defer func() { must.NoError(t, s.Close()) }()
	b := joins(t, s, "room", Guest{Key: "ann"})
	eventually.True(t, "there is an offer", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.sdp) > 0
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(b.sdp[0], fmt.Sprintf(" 192.0.2.7 %d typ host", s.addr.Port)) {
		t.Errorf("the public address is not told: %s", b.sdp[0])
	}
}
