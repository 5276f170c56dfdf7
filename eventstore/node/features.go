package node

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
)

// protocolVersion is the release of the original whose behaviour the node
// follows. Clients decide by it what they may expect.
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

type gossipServer struct {
	gossip.UnimplementedGossipServer
	node *Node
}

// Read describes a cluster of one. Its address is the first TCP one; behind
// the unix socket alone it is the socket's target, with no port.
func (g *gossipServer) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	at := &gossip.EndPoint{Address: g.node.Addr()}
	for _, e := range g.node.endpoints {
		host, port, err := net.SplitHostPort(e.address)
		if e.listener.Addr().Network() != "tcp" || err != nil {
			continue
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			continue
		}
		at = &gossip.EndPoint{Address: host, Port: uint32(number)}
		break
	}
	return &gossip.ClusterInfo{Members: []*gossip.MemberInfo{{
		InstanceId:   idToProto(g.node.id, false),
		TimeStamp:    time.Now().UnixMicro() * 10,
		State:        gossip.MemberInfo_Leader,
		IsAlive:      true,
		HttpEndPoint: at,
	}}}, nil
}
