package voice

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/stun/v4"

	"humanqa/internal/strangers"
)

const (
	// A connection to the TCP port is a stranger's until its first message names a browser that
	// was offered the port.
	maxStrangers = 64
	firstMessage = 512
	strangerTime = 5 * time.Second
	// maxConnsOf bounds those of a browser. It needs one, and may try one from each of its
	// networks.
	maxConnsOf = 8
)

var errStranger = errors.New("the first message names no browser that may connect")

// port is the TCP port of all rooms.
type port struct {
	*ice.TCPMuxDefault

	mu    sync.Mutex
	conns map[string]int // of each browser, by the name (ufrag) in its offer
}

func newPort(l net.Listener) *port {
	p := &port{conns: map[string]int{}}
	guarded := &strangers.Listener{Listener: l, Most: maxStrangers, Bytes: 2 + firstMessage, Time: strangerTime}
	p.TCPMuxDefault = ice.NewTCPMuxDefault(ice.TCPMuxParams{Listener: door{guarded, p}, Logger: quietly, ReadBufferSize: 16})
	return p
}

// GetConnByUfrag implements ice.TCPMux. It comes before the offer.
func (p *port) GetConnByUfrag(name string, isIPv6 bool, local net.IP) (net.PacketConn, error) {
	p.mu.Lock()
	p.conns[name] += 0 // it may connect from now on
	p.mu.Unlock()
	return p.TCPMuxDefault.GetConnByUfrag(name, isIPv6, local)
}

// RemoveConnByUfrag implements ice.TCPMux.
func (p *port) RemoveConnByUfrag(name string) {
	p.mu.Lock()
	delete(p.conns, name)
	p.mu.Unlock()
	p.TCPMuxDefault.RemoveConnByUfrag(name)
}

func (p *port) admit(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, offered := p.conns[name]
	if !offered || n >= maxConnsOf {
		return false
	}
	p.conns[name]++
	return true
}

func (p *port) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[name] > 0 { // else the browser has left its room
		p.conns[name]--
	}
}

type door struct {
	*strangers.Listener
	port *port
}

func (d door) Accept() (net.Conn, error) {
	conn, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	stranger, _ := conn.(*strangers.Conn)
	return &place{Conn: stranger, port: d.port, leave: func() {}}, nil
}

// place is a connection. It gives the rooms its first message once it knows the browser.
type place struct {
	*strangers.Conn
	port  *port
	first *bytes.Reader // nil until the first message is there
	leave func()
}

func (c *place) Read(b []byte) (int, error) {
	if c.first == nil {
		message, err := c.enter()
		if err != nil {
			return 0, err
		}
		c.first = bytes.NewReader(message)
	}
	if c.first.Len() > 0 {
		return c.first.Read(b)
	}
	return c.Conn.Read(b)
}

// enter reads the first message, which is a binding request of STUN behind its length.
func (c *place) enter() ([]byte, error) {
	message := make([]byte, 2+firstMessage)
	if _, err := io.ReadFull(c.Conn, message[:2]); err != nil {
		return nil, err
	}
	length := 2 + int(binary.BigEndian.Uint16(message))
	if length > len(message) {
		return nil, errStranger
	}
	message = message[:length]
	if _, err := io.ReadFull(c.Conn, message[2:]); err != nil {
		return nil, err
	}
	request, user := stun.Message{Raw: message[2:]}, stun.Username{}
	if err := request.Decode(); err != nil {
		return nil, fmt.Errorf("%w: %w", errStranger, err)
	}
	if err := user.GetFrom(&request); err != nil {
		return nil, fmt.Errorf("%w: %w", errStranger, err)
	}
	name, _, _ := strings.Cut(user.String(), ":")
	if !c.port.admit(name) {
		return nil, errStranger
	}
	c.leave = sync.OnceFunc(func() { c.port.release(name) })
	c.Know()
	return message, nil
}

func (c *place) Close() error {
	c.leave()
	return c.Conn.Close()
}
