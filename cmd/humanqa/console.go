package main

import (
	"context"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/httpapi/console"
	"humanqa/internal/checkup"
	"humanqa/internal/credential"
	"humanqa/projections"
	"humanqa/webhooks"
)

// consoleDeps is what operators' pages stand on.
func (s *service) consoleDeps(ctx context.Context, reads *projections.Reads, store *credential.Store, log *logrus.Logger) console.Deps {
	checks := checkup.New(s.core.db, func(ctx context.Context, tell checkup.Progress) (checkup.Result, error) {
		out, err := fsck(ctx, s.core, log, tell)
		return checkup.Result{Events: out.Events, Jobs: out.Jobs, Findings: out.Findings}, err
	}, log)
	s.core.stops.add("checks", workerStop, func(context.Context) error { checks.Stop(); return nil })
	return console.Deps{
		Commands: s.core.commands, Reads: reads, Credentials: store, Deliveries: webhooks.NewLog(s.core.db), Log: s.core.log,
		Checks: checks, Status: s.consumers.Status, DB: s.core.db, Problems: s.problems, Audit: s.core.signer().Problem, Now: time.Now,
		Facts: s.facts(ctx), Settings: s.cfg.inForce(),
	}
}

// facts is what this process is made of, and runs on.
func (s *service) facts(ctx context.Context) []console.Fact {
	b := thisBuild()
	facts := []console.Fact{
		{Name: "humanqa", Value: b.Version}, {Name: "commit", Value: b.Commit}, {Name: "Go", Value: b.GoVersion},
		{Name: "machine", Value: runtime.GOOS + "/" + runtime.GOARCH + ", " + strconv.Itoa(runtime.GOMAXPROCS(0)) + " processors"},
		{Name: "process", Value: strconv.Itoa(os.Getpid()) + ", runs " + s.cfg.Roles.String()},
		{Name: "started", Value: time.Now().UTC().Format(time.RFC3339)},
	}
	var postgres string
	if err := s.core.db.GetContext(ctx, &postgres, "SHOW server_version"); err == nil {
		facts = append(facts, console.Fact{Name: "PostgreSQL", Value: postgres})
	}
	node := "the embedded node"
	if s.cfg.EventStoreURL != "" {
		node = "another server"
	}
	return append(facts, console.Fact{Name: "event log", Value: node})
}

// inForce is every setting as it holds: what the environment said, or what holds
// without. No secret is in it.
func (c Config) inForce() []console.Setting {
	var all []console.Setting
	for _, s := range settings() {
		value, given := c.given[s.name]
		if !given {
			value = s.byDefault
		}
		all = append(all, console.Setting{Name: s.name, Value: value, About: s.about, Given: given})
	}
	return all
}

// unsecret leaves out of a setting what could be a secret: keys, and of an address
// everything but where it leads.
func unsecret(name, value string) string {
	switch {
	case strings.HasSuffix(name, "_KEY") && name != "HUMANQA_TLS_KEY", strings.Contains(name, "SECRET"), strings.Contains(name, "PASSWORD"):
		return "set, and shown to nobody"
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
