package node_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/prometheus/client_golang/prometheus"

	"humanqa/eventstore/node"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

func TestOpenSubscriptionsAreListedWithTheirLagAndAreGoneWhenTheyEnd(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	n := start(t, node.Config{
		DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), Listen: "127.0.0.1:0", CertDir: t.TempDir(), Registerer: metrics,
	})
	local := connect(t, socketConfig(n.Addr()))
	far, err := esdb.ParseConnectionString(n.ConnectionStrings()[0])
	must.NoError(t, err)
	far.Username, far.Password = node.Username, n.GeneratedPassword()
	remote := connect(t, far)
	const events = 7
	for range events {
		_, err := local.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, event())
		must.NoError(t, err)
	}
	all, err := local.SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	one, err := remote.SubscribeToStream(t.Context(), "s", esdb.SubscribeToStreamOptions{From: esdb.Start{}})
	must.NoError(t, err)
	arrived := func(sub *esdb.Subscription) {
		for seen := 0; seen < events; {
			if got := sub.Recv(); got.EventAppeared != nil {
				seen++
			} else if got.SubscriptionDropped != nil {
				t.Fatal(got.SubscriptionDropped.Error)
			}
		}
	}
	arrived(all)
	arrived(one)
	eventually.Within(t, patience, func() error {
		list, total := n.Subscriptions()
		if total != 2 || len(list) != 2 {
			return fmt.Errorf("%d of %d subscriptions: %+v", len(list), total, list)
		}
		for _, s := range list {
			if s.Position != events || s.Lag != 0 || s.Since.IsZero() {
				return fmt.Errorf("%+v is not at the end", s)
			}
			switch s.Stream {
			case "$all":
				if s.Address != "socket" || s.User != "" {
					t.Errorf("the service's own is %+v", s)
				}
			case "s":
				if s.Address == "socket" || s.Address == "" || s.User != node.Username {
					t.Errorf("the remote one is %+v", s)
				}
			default:
				t.Errorf("got %+v", s)
			}
		}
		return nil
	})
	must.NoError(t, all.Close())
	must.NoError(t, one.Close())
	eventually.Within(t, patience, func() error {
		if list, total := n.Subscriptions(); total != 0 {
			return fmt.Errorf("%+v are left", list)
		}
		return nil
	})
}

// A client that takes nothing more has a lag, which the metrics show.
func TestASubscriptionThatStandsStillHasALag(t *testing.T) {
	t.Parallel()
	metrics := prometheus.NewRegistry()
	n := start(t, node.Config{DSN: pgtest.NewDSN(t), Socket: filepath.Join(socketDir(t), "s"), Registerer: metrics})
	client, writer := connect(t, socketConfig(n.Addr())), connect(t, socketConfig(n.Addr()))
	sub, err := client.SubscribeToAll(t.Context(), esdb.SubscribeToAllOptions{From: esdb.Start{}})
	must.NoError(t, err)
	defer func() { must.NoError(t, sub.Close()) }()
	eventually.Within(t, patience, func() error {
		batch := make([]esdb.EventData, 50)
		for i := range batch { // more than the windows of a connection hold
			batch[i] = event()
			batch[i].Data = make([]byte, 10_000)
		}
		_, err := writer.AppendToStream(t.Context(), "s", esdb.AppendToStreamOptions{}, batch...)
		must.NoError(t, err)
		list, _ := n.Subscriptions()
		if len(list) != 1 || list[0].Lag < 100 {
			return fmt.Errorf("%+v", list)
		}
		return nil
	})
	families, err := metrics.Gather()
	must.NoError(t, err)
	for _, family := range families {
		if family.GetName() == "humanqa_eventlog_subscription_lag" {
			if lag := family.GetMetric()[0].GetGauge().GetValue(); lag < 100 {
				t.Errorf("the metric says %v", lag)
			}
			return
		}
	}
	t.Error("there is no metric of the lag")
}
