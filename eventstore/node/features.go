package node

import (
	"context"
	"net"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/grpc/peer"
)

// protocolVersion is the release of the original whose behaviour the node
// follows. Clients derive the features to expect from it.
const protocolVersion = "24.10.0"

type featuresServer struct {
	serverfeatures.UnimplementedServerFeaturesServer
}

func (*featuresServer) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	const service = "event_store.client.streams.streams"
	return &serverfeatures.SupportedMethods{
		EventStoreServerVersion: protocolVersion,
		Methods: []*serverfeatures.SupportedMethod{
			{MethodName: "read", ServiceName: service, Features: []string{"position", "events"}},
			{MethodName: "append", ServiceName: service},
			{MethodName: "batchappend", ServiceName: service, Features: []string{"deadline_duration"}},
			{MethodName: "delete", ServiceName: service},
			{MethodName: "tombstone", ServiceName: service},
			{MethodName: "read", ServiceName: "event_store.client.gossip.gossip"},
			{MethodName: "getsupportedmethods", ServiceName: "event_store.client.server_features.serverfeatures"},
		},
	}, nil
}

// gossipServer describes a cluster of one node, by the address of the client's call.
type gossipServer struct {
	gossip.UnimplementedGossipServer
	node *Node
	// host is the name the listener was given; empty for one that listens on
	// every address, or on a socket.
	host string
}

// Read names the listener that was asked. So a client that looks for the leader
// stays at its address, with TLS or without.
func (g *gossipServer) Read(ctx context.Context, _ *shared.Empty) (*gossip.ClusterInfo, error) {
	at := &gossip.EndPoint{Address: g.node.Addr()} // of a socket: its target, without a port
	if p, ok := peer.FromContext(ctx); ok {
		if local, ok := p.LocalAddr.(*net.TCPAddr); ok {
			at = &gossip.EndPoint{Address: local.IP.String(), Port: uint32(local.Port)}
			if g.host != "" {
				at.Address = g.host
			}
		}
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		InstanceId:   idToProto(g.node.id),
		TimeStamp:    time.Now().UnixMicro() * 10,
		State:        gossip.MemberInfo_Leader,
		IsAlive:      true,
		HttpEndPoint: at,
	}}}, nil
}

// hostOf is the host of a listen address, unless that means every address.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip != nil && ip.IsUnspecified() {
		return ""
	}
	return host
}
