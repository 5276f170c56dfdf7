package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/serverfeatures"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"humanqa/internal/testing/must"
)

// strange is a log of an operator's own that refuses appends beyond a limit.
type strange struct {
	streams.UnimplementedStreamsServer
	serverfeatures.UnimplementedServerFeaturesServer
	limit int // in bytes
}

func (*strange) GetSupportedMethods(context.Context, *shared.Empty) (*serverfeatures.SupportedMethods, error) {
	return &serverfeatures.SupportedMethods{EventStoreServerVersion: "23.10.8"}, nil
}

func (s *strange) Append(in streams.Streams_AppendServer) error {
	size := 0
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		size += len(m.GetProposedMessage().GetData())
	}
	if size > s.limit {
		in.SetTrailer(metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", strconv.Itoa(s.limit)))
		return status.Errorf(codes.InvalidArgument, "Maximum Append Size of %d Exceeded.", s.limit)
	}
	return in.SendAndClose(&streams.AppendResp{Result: &streams.AppendResp_WrongExpectedVersion_{
		WrongExpectedVersion: &streams.AppendResp_WrongExpectedVersion{},
	}})
}

// told is a node whose gossip is told to it.
type told struct {
	gossip.UnimplementedGossipServer
	members []*gossip.MemberInfo
}

func (s *told) Read(context.Context, *shared.Empty) (*gossip.ClusterInfo, error) {
	return &gossip.ClusterInfo{Members: s.members}, nil
}

// inspectStrange inspects the log at a node that is in a state, with nodes of its cluster that
// are down.
func inspectStrange(t *testing.T, s *strange, state gossip.MemberInfo_VNodeState, down int) map[string]Finding {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must.NoError(t, err)
	of := func(port int, state gossip.MemberInfo_VNodeState) *gossip.MemberInfo {
		return &gossip.MemberInfo{
			State: state, IsAlive: state != gossip.MemberInfo_Manager,
			HttpEndPoint: &gossip.EndPoint{Address: "127.0.0.1", Port: uint32(port)},
		}
	}
	own := of(l.Addr().(*net.TCPAddr).Port, state)
	own.IsAlive = true
	members := []*gossip.MemberInfo{own}
	for i := range down {
		members = append(members, of(i+1, gossip.MemberInfo_Manager))
	}
	server := grpc.NewServer()
	gossip.RegisterGossipServer(server, &told{members: members})
	serverfeatures.RegisterServerFeaturesServer(server, s)
	streams.RegisterStreamsServer(server, s)
	go func() { _ = server.Serve(l) }() // ends with Stop
	t.Cleanup(server.Stop)
	c, err := Open("esdb://"+l.Addr().String()+",127.0.0.1:1?tls=false", quietLog())
	must.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() }) // it may look for a leader still
	return byName(t, c.Inspect(t.Context()))
}

func TestAnInspectionTellsALimitThatIsTooLow(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{65536, 1 << 20} {
		found := inspectStrange(t, &strange{limit: limit}, gossip.MemberInfo_Leader, 0)
		f := found["append of 1 MiB"]
		if f.OK != (limit == 1<<20) || !f.OK && (!strings.Contains(f.Detail, "65536") || !strings.Contains(f.Hint, "--max-append-size")) {
			t.Errorf("a limit of %d: %+v", limit, f)
		}
		if !found["append"].OK {
			t.Errorf("a limit of %d: %+v", limit, found["append"])
		}
	}
}

func TestAnInspectionOfAClusterWithoutAQuorumSaysThatThereIsNoLeader(t *testing.T) {
	t.Parallel()
	found := inspectStrange(t, &strange{}, gossip.MemberInfo_Unknown, 2)
	if f := found["connection"]; f.OK {
		t.Errorf("got %+v", f)
	}
	if f := found["nodes"]; f.OK || !strings.Contains(f.Detail, "there is no leader") || strings.Count(f.Detail, "(down)") != 2 ||
		!strings.Contains(f.Hint, "a majority elects") {
		t.Errorf("got %+v", f)
	}
}

func TestAGrantAddsAReaderToTheMetadataOfAllAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	_, c := setup(t)
	stands := func(want string) {
		t.Helper()
		metadata, _, err := c.allMetadata(t.Context())
		must.NoError(t, err)
		if got, err := json.Marshal(metadata); err != nil || string(got) != want {
			t.Errorf("the metadata of $all are %s, %v; want %s", got, err, want)
		}
	}
	grants := func(user string, want bool) {
		t.Helper()
		if granted, err := c.Grant(t.Context(), user); err != nil || granted != want {
			t.Errorf("granted to %s: %t, %v; want %t", user, granted, err, want)
		}
	}
	grants("ann", true)
	grants("ann", false)
	stands(`{"$acl":{"$r":["$admins","ann"]}}`)
	_, _, err := call(t.Context(), c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, allMetadata, esdb.AppendToStreamOptions{}, esdb.EventData{
			EventType: "$metadata", ContentType: esdb.ContentTypeJson, Data: []byte(`{"$acl":{"$r":"ops","$w":"$admins"},"note":1}`)})
	})
	must.NoError(t, err)
	grants("bob", true)
	stands(`{"$acl":{"$r":["ops","bob"],"$w":"$admins"},"note":1}`)
}
