package eventstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/gossip"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"humanqa/domain"
	"humanqa/domain/origin"
)

// Finding is one line of an inspection.
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // the remedy
}

const (
	// inspectTime bounds each look.
	inspectTime = 5 * time.Second
	// roundTrips is the number of calls behind the median of a round trip time.
	roundTrips = 11
	// oldestVersion is the oldest major version that the protocol was tried with.
	oldestVersion = 21
)

// Inspect checks the service's needs of a log without a write. An append that expects
// an impossible revision is refused for that reason only if the user may append. It
// stops if the log cannot be reached.
func (c *Client) Inspect(ctx context.Context) []Finding {
	i := inspection{Client: c}
	version, err := look(ctx, c, func(_ context.Context, client *esdb.Client) (*esdb.ServerVersion, error) {
		return client.GetServerVersion()
	})
	if err != nil {
		i.add("connection", err, "", "is the address right, does it listen, and with TLS: is tlsCaFile the authority of its certificate?")
		if members, err := i.gossip(ctx); err == nil { // no client connects to a cluster without a leader
			i.nodes(members, nil)
		}
		return i.found
	}
	i.found = append(i.found, Finding{What: "connection", OK: true, Detail: i.how()})
	i.version(*version)
	i.nodes(i.gossip(ctx))
	i.rights(ctx)
	i.name(ctx)
	i.times(ctx)
	return i.found
}

type inspection struct {
	*Client
	found []Finding
}

// look runs one call.
func look[T any](ctx context.Context, c *Client, f func(context.Context, *esdb.Client) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	result, _, err := call(ctx, c.connector(), f)
	return result, err
}

func (i *inspection) add(what string, err error, detail, hint string) {
	f := Finding{What: what, OK: err == nil, Detail: detail}
	if refused, ok := errors.AsType[*esdb.Error](err); ok && refused.Code() == esdb.ErrorCodeUnauthenticated {
		hint = "put user and password into the address: esdb://user:password@…"
	}
	if err != nil {
		f.Detail, f.Hint = strings.Join(strings.Fields(err.Error()), " "), hint
	}
	i.found = append(i.found, f)
}

func (i *inspection) config() esdb.Configuration { return i.pool[0].config }

// how describes the connection to the log: its transport and its user.
func (i *inspection) how() string {
	config := i.config()
	switch {
	case strings.HasPrefix(config.Address, "unix:"):
		return "a unix socket"
	case config.DisableTLS && config.Username != "":
		return "without TLS; the credentials are not sent"
	case config.DisableTLS:
		return "without TLS"
	case config.Username == "":
		return "TLS, without a user"
	}
	return "TLS, as " + config.Username
}

func (i *inspection) version(v esdb.ServerVersion) {
	detail := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	var err error
	if v.Major < oldestVersion {
		err = fmt.Errorf("%s is older than %d", detail, oldestVersion)
	}
	i.add("version", err, detail, "run EventStoreDB 22 or later, or KurrentDB")
}

// nodes looks for the leader among the members of the log.
func (i *inspection) nodes(members []*gossip.MemberInfo, err error) {
	if err != nil {
		i.add("nodes", err, "", "the node's gossip has to be reachable: clients find a cluster's leader by it")
		return
	}
	var leader string
	var alive []string
	for _, m := range members {
		at := net.JoinHostPort(m.GetHttpEndPoint().GetAddress(), strconv.FormatUint(uint64(m.GetHttpEndPoint().GetPort()), 10))
		if !m.GetIsAlive() {
			at += " (down)"
		} else if m.GetState() == gossip.MemberInfo_Leader {
			leader = at
		}
		alive = append(alive, at)
	}
	if leader == "" {
		err = fmt.Errorf("there is no leader among %s", strings.Join(alive, ", "))
	}
	i.add("nodes", err, fmt.Sprintf("%d, the leader is %s", len(members), leader),
		"wait for the election, or start the nodes that are down: a majority elects")
}

// gossip asks the first node that answers for all nodes.
func (i *inspection) gossip(ctx context.Context) ([]*gossip.MemberInfo, error) {
	config := i.config()
	var addresses []string
	if config.Address != "" {
		addresses = append(addresses, config.Address)
	}
	for _, seed := range config.GossipSeeds {
		addresses = append(addresses, net.JoinHostPort(seed.Host, strconv.Itoa(int(seed.Port))))
	}
	creds := insecure.NewCredentials()
	if !config.DisableTLS {
		creds = credentials.NewTLS(&tls.Config{
			RootCAs: config.RootCAs, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: config.SkipCertificateVerification,
		})
	}
	var failed error
	for _, address := range addresses {
		members, err := askGossip(ctx, address, creds)
		if err == nil {
			return members, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func askGossip(ctx context.Context, address string, creds credentials.TransportCredentials) ([]*gossip.MemberInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	info, err := gossip.NewGossipClient(conn).Read(ctx, &shared.Empty{})
	return info.GetMembers(), err
}

// never is a revision that no stream has.
const never = uint64(1) << 40

const (
	grant = `give the user the rights, or an account in $admins; for $all: humanqa eventstore grant USER, with the address of an admin`
	// largest is the size of the largest append of the service: names count, too.
	largest = 1<<20 - 1<<10
)

func (i *inspection) rights(ctx context.Context) {
	err := i.mayAppend(ctx, origin.Stream, "log.named", emptyData)
	i.add("append", err, "allowed", grant)
	if err == nil {
		i.add("append of 1 MiB", i.mayAppend(ctx, origin.Stream, "log.named", bytes.Repeat([]byte(" "), largest)), "allowed",
			"raise the limits of the server, and of what is between: --max-append-size is at least 1048576")
	}
	_, err = look(ctx, i.Client, func(ctx context.Context, client *esdb.Client) (struct{}, error) {
		return struct{}{}, readLast(ctx, client)
	})
	i.add("read $all", err, "allowed", grant)
	_, err = look(ctx, i.Client, func(ctx context.Context, client *esdb.Client) (struct{}, error) {
		subscription, err := client.SubscribeToAll(ctx, esdb.SubscribeToAllOptions{From: esdb.End{}})
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, subscription.Close()
	})
	i.add("subscribe to $all", err, "allowed", grant)
	i.add("set metadata", i.mayAppend(ctx, "$$"+origin.Stream, "$metadata", emptyData), "allowed", grant)
}

// mayAppend tries an append that cannot succeed.
func (i *inspection) mayAppend(ctx context.Context, stream, eventType string, data []byte) error {
	_, err := look(ctx, i.Client, func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, stream, esdb.AppendToStreamOptions{ExpectedRevision: esdb.Revision(never)},
			esdb.EventData{EventType: eventType, ContentType: esdb.ContentTypeJson, Data: data})
	})
	if refused, ok := errors.AsType[*esdb.Error](err); ok && refused.Code() == esdb.ErrorCodeWrongExpectedVersion {
		return nil
	}
	if err == nil {
		err = errors.New("an append at a revision that is not there was taken")
	}
	return err
}

func (i *inspection) name(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	name := "none yet: the service gives it one at its first start"
	seen := false
	err := i.Load(ctx, origin.Stream, 0, func(r domain.Recorded) error {
		if e, ok := r.Event.(*origin.Named); ok && !seen {
			name, seen = e.LogID, true
		}
		return nil
	})
	i.add("name", err, name, "the stream "+origin.Stream+" has to be readable")
}

func (i *inspection) times(ctx context.Context) {
	var reads, appends []time.Duration
	for range roundTrips {
		began := time.Now()
		_, err := i.Head(ctx)
		read := time.Since(began)
		if err == nil {
			err = i.mayAppend(ctx, origin.Stream, "log.named", emptyData)
		}
		if err != nil {
			return // rights reports the same error
		}
		reads, appends = append(reads, read), append(appends, time.Since(began)-read)
	}
	i.add("round trips", nil, fmt.Sprintf("a read %s, a refused append %s (medians of %d)", median(reads), median(appends), roundTrips), "")
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2].Round(10 * time.Microsecond)
}
