package node_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// What the official Go client hides: these tests speak the protocol itself.

func dial(t testing.TB, target string, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	must.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// raw is a node's Streams service, and a client that writes to the same node.
type raw struct {
	testing.TB
	streams.StreamsClient
	client *esdb.Client
}

func rawNode(t testing.TB) *raw {
	t.Helper()
	n := onSocket(t)
	return &raw{
		TB: t, StreamsClient: streams.NewStreamsClient(dial(t, n.Addr(), insecure.NewCredentials())),
		client: connect(t, socketConfig(n.Addr())),
	}
}

func (r *raw) write(stream string, n int) {
	r.Helper()
	events := make([]esdb.EventData, n)
	for i := range events {
		events[i] = event()
	}
	if _, err := r.client.AppendToStream(r.Context(), stream, esdb.AppendToStreamOptions{}, events...); err != nil {
		r.Fatal(err)
	}
}

func stream(name string) *shared.StreamIdentifier {
	return &shared.StreamIdentifier{StreamName: []byte(name)}
}

// reads runs a read and lists what came, up to the end or stop.
func (r *raw) reads(o *streams.ReadReq_Options, stop func(*streams.ReadResp) bool) ([]*streams.ReadResp, error) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	o.UuidOption = &streams.ReadReq_Options_UUIDOption{Content: &streams.ReadReq_Options_UUIDOption_String_{}}
	call, err := r.Read(ctx, &streams.ReadReq{Options: o})
	must.NoError(r, err)
	var all []*streams.ReadResp
	for {
		resp, err := call.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, resp)
		if stop != nil && stop(resp) {
			return all, nil
		}
	}
}

// laterFields are the fields that the stubs don't know, by number.
func laterFields(t *testing.T, unknown []byte) map[protowire.Number]any {
	t.Helper()
	fields := map[protowire.Number]any{}
	for len(unknown) > 0 {
		number, kind, n := protowire.ConsumeTag(unknown)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		unknown = unknown[n:]
		if kind == protowire.VarintType {
			fields[number], n = protowire.ConsumeVarint(unknown)
		} else {
			var b []byte
			b, n = protowire.ConsumeBytes(unknown)
			fields[number] = laterFields(t, b)
		}
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		unknown = unknown[n:]
	}
	return fields
}

func TestACaughtUpSubscriptionSaysWhenAndWhere(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	r.write("s", 3)
	caughtUp := func(o *streams.ReadReq_Options) map[protowire.Number]any {
		t.Helper()
		o.CountOption = &streams.ReadReq_Options_Subscription{Subscription: &streams.ReadReq_Options_SubscriptionOptions{}}
		got, err := r.reads(o, func(resp *streams.ReadResp) bool { return resp.GetCaughtUp() != nil })
		must.NoError(t, err)
		fields := laterFields(t, got[len(got)-1].GetCaughtUp().ProtoReflect().GetUnknown())
		if seconds := fields[1].(map[protowire.Number]any)[1].(uint64); seconds < 1_700_000_000 {
			t.Fatalf("it caught up at %d", seconds)
		}
		for _, resp := range got {
			if c := resp.GetCheckpoint(); c != nil && laterFields(t, c.ProtoReflect().GetUnknown())[3] == nil {
				t.Fatalf("a checkpoint without a time: %v", c)
			}
		}
		return fields
	}
	toStream := func(name string) *streams.ReadReq_Options {
		return &streams.ReadReq_Options{StreamOption: &streams.ReadReq_Options_Stream{Stream: &streams.ReadReq_Options_StreamOptions{
			StreamIdentifier: stream(name), RevisionOption: &streams.ReadReq_Options_StreamOptions_Start{},
		}}}
	}
	all := &streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{}}},
		FilterOption: &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
			Filter:                       &streams.ReadReq_Options_FilterOptions_EventType{EventType: &streams.ReadReq_Options_FilterOptions_Expression{Prefix: []string{"no"}}},
			CheckpointIntervalMultiplier: 1,
		}},
	}
	if fields := caughtUp(toStream("s")); fields[2] != uint64(2) || fields[3] != nil {
		t.Fatalf("of a stream: got %v", fields)
	}
	if fields := caughtUp(toStream("none")); fields[2] != nil || fields[3] != nil {
		t.Fatalf("of a stream that is not there: got %v", fields)
	}
	if fields := caughtUp(all); fields[2] != nil || fields[3].(map[protowire.Number]any)[1] != uint64(3) {
		t.Fatalf("of $all: got %v", fields)
	}
}

// all is a read or a subscription of $all from a position on.
func all(position uint64, o *streams.ReadReq_Options) *streams.ReadReq_Options {
	o.StreamOption = &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Position{
		Position: &streams.ReadReq_Options_Position{CommitPosition: position, PreparePosition: position},
	}}}
	return o
}

func TestASubscriptionFromBeyondTheEndBeginsBehindItsPosition(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	r.write("s", 3)
	var seen []uint64
	_, err := r.reads(all(5, &streams.ReadReq_Options{CountOption: &streams.ReadReq_Options_Subscription{}}), func(resp *streams.ReadResp) bool {
		if e := resp.GetEvent(); e != nil {
			seen = append(seen, e.GetCommitPosition())
		}
		if resp.GetCaughtUp() != nil {
			r.write("later", 4)
		}
		return len(seen) == 2
	})
	if err != nil || !slices.Equal(seen, []uint64{6, 7}) {
		t.Errorf("got the events at %v, %v", seen, err)
	}
	got, err := r.reads(all(math.MaxUint64-1, &streams.ReadReq_Options{CountOption: &streams.ReadReq_Options_Count{Count: 1}}), nil)
	if err != nil || len(got) != 0 {
		t.Errorf("from the greatest position: %v, %v", got, err)
	}
}

func TestAPositionThatIsNoneIsAnError(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	r.write("s", 3)
	backwards := all(4, &streams.ReadReq_Options{
		CountOption: &streams.ReadReq_Options_Count{Count: 1}, ReadDirection: streams.ReadReq_Options_Backwards,
	})
	uneven := all(2, &streams.ReadReq_Options{CountOption: &streams.ReadReq_Options_Count{Count: 1}})
	uneven.GetAll().GetPosition().PreparePosition--
	for _, o := range []*streams.ReadReq_Options{backwards, uneven} {
		if _, err := r.reads(o, nil); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: got %v", o, err)
		}
	}
}

func TestOneAppendMayCarryManySmallEvents(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	const many = 70_000
	messages := make([]*streams.BatchAppendReq_ProposedMessage, many)
	for i := range messages {
		messages[i] = &streams.BatchAppendReq_ProposedMessage{
			Id:       &shared.UUID{Value: &shared.UUID_String_{String_: event().EventID.String()}},
			Metadata: map[string]string{"type": "t", "content-type": "application/octet-stream"}, Data: []byte("0123456789"),
		}
	}
	call, err := r.BatchAppend(t.Context())
	must.NoError(t, err)
	err = call.Send(&streams.BatchAppendReq{
		CorrelationId: messages[0].GetId(), ProposedMessages: messages, IsFinal: true,
		Options: &streams.BatchAppendReq_Options{
			StreamIdentifier:       stream("s"),
			ExpectedStreamPosition: &streams.BatchAppendReq_Options_NoStream{NoStream: &emptypb.Empty{}},
			DeadlineOption:         &streams.BatchAppendReq_Options_Deadline{Deadline: durationpb.New(patience)},
		},
	})
	must.NoError(t, err)
	resp, err := call.Recv()
	if err != nil || resp.GetSuccess().GetCurrentRevision() != many-1 {
		t.Fatalf("got %v, %v", resp, err)
	}
}

func TestTheAppendLimitCountsAllOfAnEventAndIsSet(t *testing.T) {
	t.Parallel()
	config := node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), Log: quiet()}
	client := connect(t, socketConfig(start(t, config).Addr()))
	attempt := func(size int) error {
		e := event()
		e.Metadata = bytes.Repeat([]byte(" "), 4096)
		e.Data = bytes.Repeat([]byte("x"), size-len(e.Metadata)-len(e.EventType)-len("s"))
		_, err := client.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, e)
		return err
	}
	if err := attempt(node.MinAppendSize); err != nil {
		t.Errorf("as much as the limit: %v", err)
	}
	if err := attempt(node.MinAppendSize + 1); err == nil || !strings.Contains(err.Error(), "Maximum Append Size of 1048576 Exceeded") {
		t.Errorf("one byte more: got %v", err)
	}
	for _, wrong := range []int{node.MinAppendSize - 1, node.MaxAppendSize + 1, -1} {
		config.MaxAppendSize = wrong
		if _, err := node.Start(t.Context(), config); err == nil || !strings.Contains(err.Error(), "between 1048576 and 16767216 bytes") {
			t.Errorf("%d: got %v", wrong, err)
		}
	}
}

// listening is a node on a TLS address and an insecure one.
func listening(t *testing.T) (n *node.Node, ca *x509.CertPool) {
	t.Helper()
	return listeningOn(t, pgtest.NewDSN(t))
}

func listeningOn(t *testing.T, dsn string) (n *node.Node, ca *x509.CertPool) {
	t.Helper()
	certs := filepath.Join(t.TempDir(), "certs")
	n = start(t, node.Config{DSN: dsn, Listen: "localhost:0", InsecureListen: "127.0.0.1:0", CertDir: certs})
	pem, err := os.ReadFile(filepath.Join(certs, "ca.crt"))
	must.NoError(t, err)
	ca = x509.NewCertPool()
	if !ca.AppendCertsFromPEM(pem) {
		t.Fatal("the authority's file holds no certificate")
	}
	return n, ca
}

// addressOf is the address in a connection string.
func addressOf(connectionString string) string {
	address, _, _ := strings.Cut(strings.TrimPrefix(connectionString, "esdb://"), "?")
	return address
}

func TestGossipNamesTheListenerThatWasAsked(t *testing.T) {
	t.Parallel()
	n, ca := listening(t)
	addresses := n.ConnectionStrings()
	if len(addresses) != 2 || strings.Contains(addresses[0], "%2F") || !strings.HasSuffix(addresses[0], "/certs/ca.crt") {
		t.Fatalf("got %q", addresses)
	}
	for i, creds := range []credentials.TransportCredentials{
		credentials.NewTLS(&tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12}), insecure.NewCredentials(),
	} {
		asked := addressOf(addresses[i])
		info, err := gossip.NewGossipClient(dial(t, asked, creds)).Read(t.Context(), &shared.Empty{})
		if err != nil || len(info.GetMembers()) != 1 {
			t.Fatalf("%s: got %v, %v", asked, info, err)
		}
		at := info.GetMembers()[0].GetHttpEndPoint()
		if named := net.JoinHostPort(at.GetAddress(), fmt.Sprint(at.GetPort())); named != asked {
			t.Errorf("asked at %s it names %s", asked, named)
		}
	}
	// So a client that looks for the leader stays on TLS.
	config, err := esdb.ParseConnectionString(strings.Replace(addresses[0], "esdb://", "esdb+discover://admin:"+n.GeneratedPassword()+"@", 1))
	must.NoError(t, err)
	config.Logger = nil
	if _, err := connect(t, config).AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event()); err != nil {
		t.Error(err)
	}
}

func TestTheCertificateIsALeafOfAnAuthorityThatOutlivesIt(t *testing.T) {
	t.Parallel()
	n, ca := listening(t)
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12}}).DialContext(t.Context(), "tcp", addressOf(n.ConnectionStrings()[0]))
	must.NoError(t, err)
	defer func() { _ = conn.Close() }() // it was only looked at
	chain := conn.(*tls.Conn).ConnectionState().PeerCertificates
	if leaf := chain[0]; leaf.IsCA || !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth) {
		t.Errorf("the node shows an authority's certificate: %+v", leaf.Subject)
	}
}

func TestWhatIsNotOfferedAnswersSoInHTTP1(t *testing.T) {
	t.Parallel()
	n, ca := listening(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	for i, scheme := range []string{"https://", "http://"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, scheme+addressOf(n.ConnectionStrings()[i])+"/subscriptions", strings.NewReader("{}"))
		must.NoError(t, err)
		resp, err := client.Do(req)
		must.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		must.NoError(t, errors.Join(err, resp.Body.Close()))
		if resp.StatusCode != http.StatusNotImplemented || !strings.Contains(string(body), "Persistent subscriptions") {
			t.Errorf("%s: got %d %s", scheme, resp.StatusCode, body)
		}
	}
}

// The health checks of the original's images ask for it.
func TestTheNodeSaysThatItLivesWhileItHasTheLog(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewDSN(t)
	n, ca := listeningOn(t, dsn)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	ask := func(method, address, query string) (status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+"/health/live"+query, nil)
		must.NoError(t, err)
		resp, err := client.Do(req)
		must.NoError(t, err)
		must.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	for i, scheme := range []string{"https://", "http://"} {
		address := scheme + addressOf(n.ConnectionStrings()[i])
		for query, want := range map[string]int{"": 204, "?liveCode=200": 200, "?liveCode=alive": 204, "?liveCode=42": 204} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				if got := ask(method, address, query); got != want {
					t.Errorf("%s %s%s: got %d, want %d", method, scheme, query, got, want)
				}
			}
		}
		if got := ask(http.MethodPost, address, ""); got != http.StatusNotImplemented {
			t.Errorf("POST: got %d", got)
		}
	}
	takeOver(t, pgtest.NewDB(t, dsn), node.Config{DSN: dsn, Socket: filepath.Join(socketDir(t), "s")})
	eventually.True(t, "it says that it has no log", func() bool {
		return ask(http.MethodGet, "http://"+addressOf(n.ConnectionStrings()[1]), "?liveCode=200") == 503
	})
}
