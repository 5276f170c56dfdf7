package service

import (
	"context"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/httpapi/console"
	"humanqa/internal/buildinfo"
	"humanqa/internal/credential"
	"humanqa/projections"
	"humanqa/webhooks"
)

// consoleDeps are the dependencies of operators' pages.
func (s *Service) consoleDeps(ctx context.Context, api *httpapi.API, reads *projections.Reads, store *credential.Store) console.Deps {
	var subscriptions func() ([]node.Subscription, int)
	if s.core.node != nil {
		subscriptions = s.core.node.Subscriptions
	}
	return console.Deps{
		Subscriptions: subscriptions,
		Commands:      s.core.Commands, Reads: reads, Credentials: store, Deliveries: webhooks.NewLog(s.core.DB), Log: s.core.Log,
		Checks: s.checks, Status: s.consumers.Status, DB: s.core.Lent, Problems: s.problems, Now: time.Now,
		StillAllowed: api.Limits.StillAllowed, Link: s.evidence.Link, Facts: s.facts(ctx), Settings: s.cfg.inForce(),
	}
}

// facts describe this process and its machine.
func (s *Service) facts(ctx context.Context) []console.Fact {
	b := buildinfo.This()
	facts := []console.Fact{
		{Name: "humanqa", Value: b.Version}, {Name: "commit", Value: b.Commit}, {Name: "Go", Value: b.GoVersion},
		{Name: "machine", Value: runtime.GOOS + "/" + runtime.GOARCH + ", " + strconv.Itoa(runtime.GOMAXPROCS(0)) + " processors"},
		{Name: "process", Value: strconv.Itoa(os.Getpid()) + ", runs " + s.cfg.Roles.String()},
		{Name: "started", Value: time.Now().UTC().Format(time.RFC3339)},
	}
	var postgres string
	if err := s.core.DB.GetContext(ctx, &postgres, "SHOW server_version"); err == nil {
		facts = append(facts, console.Fact{Name: "PostgreSQL", Value: postgres})
	}
	server := "the embedded node"
	if s.cfg.EventStoreURL != "" {
		server = "another server"
	}
	return append(facts, console.Fact{Name: "event log", Value: server})
}

// inForce is every setting with its value: from the environment, or the default.
// No secret is in it.
func (c Config) inForce() []console.Setting {
	var all []console.Setting
	for _, s := range c.Settled("", nil, nil) {
		all = append(all, console.Setting{Name: s.Name, Value: s.Value, About: s.About, Given: s.From != unset})
	}
	return all
}

// unsecret removes possible secrets from a setting: keys, and all of an address
// except scheme, host and path.
func unsecret(name, value string) string {
	switch {
	case strings.HasSuffix(name, "_KEY") && name != "HUMANQA_TLS_KEY", strings.Contains(name, "SECRET"), strings.Contains(name, "PASSWORD"):
		return "set, and never shown"
	case strings.HasSuffix(name, "_COMMAND"): // its arguments may be secret
		program, _, more := strings.Cut(value, " ")
		if more {
			program += " …"
		}
		return program
	case strings.HasSuffix(name, "_URL"):
		u, err := url.Parse(value)
		if err != nil || u.Scheme == "" {
			return "set"
		}
		plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
		shown := plain.String()
		if u.User != nil || u.RawQuery != "" {
			shown += " …"
		}
		return shown
	}
	return value
}
