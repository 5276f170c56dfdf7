package service

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/eventstore/node"
	"humanqa/httpapi"
	"humanqa/httpapi/input"
	"humanqa/httpapi/ui"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/backoff"
	"humanqa/internal/blob"
	"humanqa/internal/mail"
	"humanqa/projections/auditlog"
	"humanqa/projections/events"
	"humanqa/webhooks"
)

// readyLimit is how long the read models may take to catch up at a start
// before the service answers all the same (and /readyz names the missing parts).
const readyLimit = 10 * time.Second

// openAddresses binds the addresses, and fills in the settings that depend on them.
func (s *Service) openAddresses(ctx context.Context, cfg Config, log *logrus.Logger) (_ Config, err error) {
	if cfg.Roles.API {
		if s.api, err = listen(ctx, "HUMANQA_ADDR", cfg.Addr); err != nil {
			return cfg, err
		}
		s.core.own.Listens(s.api.Addr().String())
		// A server closes its listener itself; this is for a start that fails.
		s.core.shutdown.add("api's address", closeBudget, func(context.Context) error { _ = s.api.Close(); return nil })
		if s.bucket, err = blob.Open(ctx, cfg.EvidenceURL); err != nil {
			return cfg, BadSetting("HUMANQA_EVIDENCE_URL", "%v", err)
		}
		s.core.shutdown.add("evidence", closeBudget, func(context.Context) error { return s.bucket.Close() })
		if s.voice, err = listenVoice(ctx, cfg, log); err != nil {
			return cfg, err
		}
		if s.voice != nil {
			s.core.own.Listens(s.voice.Addr().String())
			s.core.shutdown.add("voice", closeBudget, func(context.Context) error { return s.voice.Close() })
		}
		if cfg.BaseURL == "" {
			cfg.BaseURL = cfg.scheme() + baseAddr(cfg.Addr, s.api.Addr())
		}
		if err := s.tellPagesURL(cfg); err != nil {
			return cfg, err
		}
		if cfg.TLSCert != "" {
			pair, err := openCertificate(cfg.TLSCert, cfg.TLSKey, log.WithField("part", "tls"))
			if err != nil {
				return cfg, BadSetting("HUMANQA_TLS_CERT", "%v", err)
			}
			s.api = tls.NewListener(s.api, pair.config())
		}
	}
	if cfg.AdminAddr != "" {
		if s.admin, err = listenAdmin(ctx, cfg, log); err != nil {
			return cfg, err
		}
		s.core.own.Listens(s.admin.Addr().String())
		s.core.shutdown.add("admin's address", closeBudget, func(context.Context) error { _ = s.admin.Close(); return nil })
	}
	if cfg.BaseURL == "" {
		cfg.BaseURL = cfg.PagesURL() // another node's API
	}
	s.core.own.Site(cfg.BaseURL)
	if cfg.Demo {
		return forDemo(ctx, cfg)
	}
	return cfg, nil
}

// scheme starts the URLs of HUMANQA_ADDR.
func (c Config) scheme() string {
	if c.TLSCert != "" {
		return "https://"
	}
	return "http://"
}

// baseAddr is $HUMANQA_ADDR as it can be called: with the bound port instead of 0, and
// with a name where every address is served.
func baseAddr(addr string, bound net.Addr) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if tcp, ok := bound.(*net.TCPAddr); ok && port == "0" {
		port = fmt.Sprint(tcp.Port)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}

// connections bounds the open connections at HUMANQA_ADDR: each is an open file, and the
// service needs other files.
func (c Config) connections() int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return c.MaxConnections
	}
	return int(max(1, min(uint64(c.MaxConnections), files.Cur/2)))
}

// mailStore keeps addresses and choices; nil where no e-mail is sent.
func (s *Service) mailStore() *mail.Store {
	if s.cfg.Mail == nil {
		return nil
	}
	return mail.NewStore(s.core.DB, time.Now, s.mailLinks())
}

func (s *Service) mailLinks() mail.Links {
	return mail.Links{BaseURL: ui.Origin(s.cfg.PagesURL()), Keys: s.core.Vault.MACKeys}
}

func (s *Service) apiDeps(log *logrus.Logger, metrics prometheus.Registerer, spool *wire.Spool) httpapi.Deps {
	return httpapi.Deps{
		Shared: v1.Shared{
			Commands:   s.core.Commands,
			Reads:      s.core.reads(),
			DB:         s.core.DB,
			Lent:       s.core.Lent,
			Evidence:   s.evidence,
			PastLog:    s.core.Binding.Guard(),
			Head:       s.core.Binding.Guard().Head,
			Origin:     s.core.Binding,
			Checkpoint: s.core.checkpoint,
			OwnLog:     auditlog.NewOwn(s.core.Log, s.core.DB, s.core.Signer()),
			Log:        log.WithField("part", "api"),
			Now:        s.core.Clock.Now,
			BaseURL:    s.cfg.BaseURL,
		},
		WaitFor:       s.consumers.WaitFor,
		Shown:         s.consumers.Shown,
		FeedShown:     func(ctx context.Context) error { return s.consumers.CatchUp(ctx, events.Name) },
		WebhooksShown: func(ctx context.Context) error { return s.consumers.CatchUp(ctx, webhooks.SubscriberName) },
		Ready:         s.problems,
		Halted:        s.core.Binding.Refuse,
		Vault:         s.core.Vault,
		Spool:         spool,
		Tracer:        s.tracer,
		RateLimit:     s.cfg.RateLimit,
		LogAddresses:  s.cfg.LogAddresses(),
		Settings: input.Settings{
			WebhookAllow:   s.cfg.WebhookAllow,
			Targets:        s.cfg.TargetAllow,
			PrivateTargets: s.cfg.Demo,
			Resolve: func(ctx context.Context, host string) error {
				_, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
				return err
			},
			HostedDomains: s.cfg.HostedDomains,
		},
		Metrics: metrics,
	}
}

// becomeReady seeds the demo data of a first start and gives the read models time
// to catch up, so that the keys that are printed work at once.
func (s *Service) becomeReady(ctx context.Context, log *logrus.Logger) error {
	at, err := headPatiently(ctx, s.core.Log, log)
	if err != nil {
		return err
	}
	if s.cfg.Demo {
		var seeded domain.Position
		if s.demo, seeded, err = seedDemo(ctx, s.core, s.cfg.BaseURL); err != nil {
			return err
		}
		at = at.Max(seeded)
	}
	if file := s.cfg.WebhookCAFile; file != "" && !s.cfg.Demo {
		if _, err := os.Stat(file); err != nil {
			log.WithError(err).Warn("HUMANQA_WEBHOOK_CA_FILE is not there yet: its certificates are trusted once it is")
		}
	}
	if s.bucket != nil {
		s.warnOfEvidence(ctx, log)
	}
	if !s.cfg.Roles.Projector {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	err = s.consumers.WaitFor(short, at)
	if err == nil {
		err = s.consumers.WaitForBuilds(short)
	}
	if err != nil && ctx.Err() == nil {
		log.WithError(err).Warn("the read models are still behind: answers may be old, /readyz tells when they are not")
	}
	if s.api != nil {
		if s.guestLinks, err = s.welcomeLinks(short); err != nil && ctx.Err() == nil {
			log.WithError(err).Warn("no links to sign in by are printed: humanqa person invite makes one")
		}
	}
	return nil
}

// bucketLimit is how long a start waits for the bucket's answer.
const bucketLimit = 5 * time.Second

// warnOfEvidence says that the bucket cannot be used yet: uploads and links
// are refused until it can, everything else works.
func (s *Service) warnOfEvidence(ctx context.Context, log *logrus.Logger) {
	ctx, cancel := context.WithTimeout(ctx, bucketLimit)
	defer cancel()
	if err := s.bucket.Reachable(ctx); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		log.WithError(err).Warn("HUMANQA_EVIDENCE_URL names a bucket that cannot be reached: there is no evidence until it can")
	}
}

// watchPostgres ends with the embedded server. A death that a restart heals is not that
// end.
func (c *Core) watchPostgres(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.postgres.Done():
		return c.postgres.Err()
	}
}

const (
	// lockGrace is how long the node may be without the log's lock before commands are refused.
	// Most losses are over sooner.
	lockGrace = 500 * time.Millisecond
	lockLook  = 100 * time.Millisecond
)

// watchLock refuses commands while the node has lost the log's lock. It ends once another
// process has the lock: that one's log goes on, and a supervisor starts this process anew.
func (c *Core) watchLock(ctx context.Context) error {
	for lost := time.Duration(0); backoff.Wait(ctx, lockLook) == nil; {
		cause := context.Cause(c.node.Term())
		switch {
		case errors.Is(cause, node.ErrLocked):
			c.Binding.Silent("another process has taken its lock")
			return lockedLog(cause)
		case cause != nil && lost >= lockGrace:
			c.Binding.Silent("its lock is lost")
		case cause == nil && lost >= lockGrace:
			c.Binding.Answers()
		}
		if lost += lockLook; cause == nil {
			lost = 0
		}
	}
	return nil
}

// lockedLog says what to do where another process has the log's lock.
func lockedLog(err error) error {
	return fmt.Errorf("%w: stop the service that runs it, use its log by HUMANQA_EVENTSTORE_URL, or set HUMANQA_DATABASE_URL to a database of its own", err)
}

// disableWebhook tells the log that the dispatcher has disabled an endpoint. Telling it twice
// is harmless: a disabled webhook is not disabled again. The command has no
// derived id, because a delivery that is replayed later may fail a second time.
func (c *Core) disableWebhook(ctx context.Context, projectID, deliveryID, reason string) error {
	_, err := c.Commands.DisableWebhook(ctx, command.Cause{
		CommandID: domain.NewCommandID(),
		Actor:     "webhooks",
	}, projectID, deliveryID, reason)
	return err
}

// confirmSecret tells the log that a receiver has the new secret of a rotation.
func (c *Core) confirmSecret(ctx context.Context, projectID, sealed string) error {
	_, err := c.Commands.ConfirmSecret(ctx, command.Cause{
		CommandID: domain.NewCommandID(),
		Actor:     "webhooks",
	}, projectID, sealed)
	return err
}

//go:embed texts/welcome.txt
var welcomeText string

// Welcome prints the addresses and the next steps.
func (s *Service) Welcome(w io.Writer) {
	shown := map[string]any{
		"API": s.api, "URL": s.cfg.BaseURL, "Roles": s.cfg.Roles, "DataDir": s.cfg.DataDir, "Admin": s.admin, "Voice": s.voice,
		"Postgres": s.core.postgres, "DSN": s.core.dsn, "Node": s.core.node, "User": node.Username, "Links": s.guestLinks,
	}
	if s.core.postgres != nil && !strings.HasPrefix(s.core.postgres.Home(), s.cfg.DataDir) {
		shown["Elsewhere"] = s.core.postgres.Home()
	}
	if s.cfg.Demo && s.api != nil {
		shown["Demo"] = DemoPath(s.cfg.DataDir)
	}
	_ = template.Must(template.New("welcome").Parse(welcomeText)).Execute(w, shown) // a closed terminal ends us by its signal
}
