// Package clustertest is a cluster of three for tests: three listeners before one
// embedded node. They answer as the members of an original EventStoreDB cluster do. The
// leader can be changed, killed, frozen and parted from the others.
//
//   - Gossip names the members, their states and the leader.
//   - Only the leader takes appends. A follower answers NotLeader with the leader's
//     address; while there is none, "Server Is Not Ready".
//   - A killed member refuses connections. A frozen one accepts them and stays silent.
//     A parted one thinks that it leads until it is back, and its appends have no
//     effect.
//   - A follower's reads are up to Stale behind.
//   - A subscription can be dropped as too slow.
package clustertest

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"humanqa/internal/testing/must"
)

const (
	members = 3
	// Election is how long the other members take to notice that the leader is
	// gone, and to elect another.
	Election = 2 * time.Second
	// Stale is how far behind a follower's reads may be.
	Stale = 500 * time.Millisecond
	// none is Cluster.leader while no member leads.
	none = -1
)

// Cluster is three members before one log.
type Cluster struct {
	t       testing.TB
	backend *grpc.ClientConn
	members [members]*member

	mu     sync.Mutex
	leader int
	term   int           // counts elections, so that a late one has no effect
	slow   chan struct{} // closed to drop every subscription
}

type member struct {
	*Cluster

	index   int
	address string

	// Guarded by the cluster's lock.
	server *grpc.Server  // nil while it is down
	frozen chan struct{} // closed when it thaws; nil unless it is frozen
	parted bool
}

// New begins with member 0 as the leader. target is the gRPC target of a node.
func New(t testing.TB, target string) *Cluster {
	t.Helper()
	backend, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage),
			grpc.MaxCallSendMsgSize(maxMessage)))
	must.NoError(t, err)
	c := &Cluster{t: t, backend: backend, slow: make(chan struct{})}
	for i := range c.members {
		c.members[i] = &member{Cluster: c, index: i, address: "127.0.0.1:0"}
		c.Revive(i)
	}
	t.Cleanup(func() {
		for i := range c.members {
			c.Thaw(i)
			c.stop(i)
		}
		_ = backend.Close() // nothing to save
	})
	return c
}

// URL is the connection string with all three members.
func (c *Cluster) URL() string {
	var all []string
	for _, m := range c.members {
		all = append(all, m.address)
	}
	return "esdb://" + strings.Join(all, ",") + "?tls=false"
}

// Leader is the member that leads, -1 while none does.
func (c *Cluster) Leader() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader
}

// Kill ends a member at once.
func (c *Cluster) Kill(i int) {
	c.stop(i)
	c.lose(i)
}

// Freeze makes a member silent, like a stopped process.
func (c *Cluster) Freeze(i int) {
	c.mu.Lock()
	c.members[i].frozen = make(chan struct{})
	c.mu.Unlock()
	c.lose(i)
}

// Part cuts a member off from the others, but not from clients.
func (c *Cluster) Part(i int) {
	c.mu.Lock()
	c.members[i].parted = true
	c.mu.Unlock()
	c.lose(i)
}

// Thaw ends the effect of Freeze and Part; the member follows.
func (c *Cluster) Thaw(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.members[i]; m.frozen != nil {
		close(m.frozen)
		m.frozen = nil
	}
	c.members[i].parted = false
}

// Revive starts a member that is down, at the address that it had.
func (c *Cluster) Revive(i int) {
	c.t.Helper()
	m := c.members[i]
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", m.address)
	must.NoError(c.t, err)
	m.address = listener.Addr().String()
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(m.handle),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}))
	c.mu.Lock()
	m.server = server
	c.mu.Unlock()
	go func() { _ = server.Serve(&freezing{listener, m}) }() // ends with Stop
}

func (c *Cluster) stop(i int) {
	c.mu.Lock()
	server := c.members[i].server
	c.members[i].server = nil
	c.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// lose makes the other members elect a leader, if the lost member was the leader.
func (c *Cluster) lose(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader != i {
		return
	}
	c.term++
	term := c.term
	time.AfterFunc(Election/2, func() { // the others notice
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.term == term {
			c.leader = none
		}
	})
	time.AfterFunc(Election, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for next := range c.members {
			if m := c.members[(i+1+next)%members]; c.term == term && m.up() {
				c.leader = m.index
				return
			}
		}
	})
}

// up says whether the others see a member. The caller holds the lock.
func (m *member) up() bool { return m.server != nil && m.frozen == nil && !m.parted }

// Drop ends every subscription as too slow.
func (c *Cluster) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.slow)
	c.slow = make(chan struct{})
}

// view is a member's view of the cluster.
type view struct {
	leads  bool
	leader *member // nil: none
	parted bool
	slow   <-chan struct{}
}

func (m *member) view() view {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := view{leads: m.leader == m.index, parted: m.parted, slow: m.slow}
	if m.leader != none {
		v.leader = m.members[m.leader]
	}
	return v
}

// gossip is a member's answer about all members. A lost leader counts as alive until the
// others notice.
func (m *member) gossip() *gossip.ClusterInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	info := &gossip.ClusterInfo{}
	for _, other := range m.members {
		state := gossip.MemberInfo_Follower
		alive := other.up()
		switch {
		case other.index == m.leader:
			state, alive = gossip.MemberInfo_Leader, true
		case m.leader == none:
			state = gossip.MemberInfo_Unknown
		}
		if m.parted { // to itself it leads, and all others are dead
			alive = other == m
			if state = gossip.MemberInfo_Follower; other == m {
				state = gossip.MemberInfo_Leader
			}
		}
		info.Members = append(info.Members, &gossip.MemberInfo{State: state, IsAlive: alive, HttpEndPoint: other.endPoint()})
	}
	return info
}

func (m *member) endPoint() *gossip.EndPoint {
	host, text, _ := net.SplitHostPort(m.address) // of a listener
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		panic(err)
	}
	return &gossip.EndPoint{Address: host, Port: uint32(port)}
}

// wait returns when the member is not frozen.
func (m *member) wait() {
	m.mu.Lock()
	frozen := m.frozen
	m.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
}

// freezing is a listener whose connections stand still while the member is
// frozen. The kernel still accepts connections for it.
type freezing struct {
	net.Listener
	m *member
}

func (f *freezing) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &frozenConn{conn, f.m}, nil
}

type frozenConn struct {
	net.Conn
	m *member
}

func (c *frozenConn) Read(b []byte) (int, error) {
	c.m.wait()
	n, err := c.Conn.Read(b)
	c.m.wait() // it was reading when it froze
	return n, err
}

func (c *frozenConn) Write(b []byte) (int, error) {
	c.m.wait()
	return c.Conn.Write(b)
}
