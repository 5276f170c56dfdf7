// Package apitest has what an API stands on, for tests: real commands, real read models, a
// real vault and evidence, over a log in memory.
//
// Shared gives the parts of the binary's one service, for a test that needs an account and
// nothing else. Such tests must not meet, as accounts never do: the package holds every
// answer against that. Own gives a test parts of its own. A test needs them if it looks at
// the queue of checkers, the whole log or whole tables, or if it makes faults.
//
//	func TestMain(m *testing.M) { os.Exit(apitest.Main(m)) }
package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the driver
	"github.com/sirupsen/logrus"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/eventstore/consumer"
	"humanqa/httpapi/evidence"
	v1 "humanqa/httpapi/v1"
	"humanqa/httpapi/wire"
	"humanqa/internal/blob"
	"humanqa/internal/testing/commandtest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/logtest"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pagetest/alltest"
	"humanqa/internal/vault"
	"humanqa/projections"
	"humanqa/webhooks"
)

// BaseURL is the service's.
const BaseURL = "https://qa.example"

// Service is what an API stands on. Its steps fail the test.
type Service struct {
	T         testing.TB
	Log       *logtest.Memory
	DB        *sqlx.DB
	Vault     *vault.Vault
	Commands  *command.Service
	Reads     *projections.Reads
	Consumers *consumer.Supervisor
	Spool     *wire.Spool
	Bucket    string // the directory of the evidence
	Words     *Words // that were logged

	files  evidence.Files
	shared bool        // by the tests of the binary
	scoped bool        // to what the test makes
	mine   *belongings // that
	began  domain.Position
}

// Own starts a service that ends with the test.
func Own(t *testing.T) *Service {
	t.Helper()
	return start(t).in(t)
}

// Beneath is the service for a subtest, which counts only its own accounts' events, as a
// test that shares a service does.
func (s *Service) Beneath(t *testing.T) *Service {
	of := *s
	of.T, of.mine, of.scoped, of.began = t, new(belongings), true, s.Log.Head()
	return &of
}

// in is the service for a test.
func (s *Service) in(t *testing.T) *Service {
	of := *s
	of.T, of.mine, of.scoped, of.began = t, new(belongings), s.shared, s.Log.Head()
	before := len(s.Words.String())
	t.Cleanup(func() { s.Words.tell(t, before) })
	return &of
}

// start starts a service; t is its life, and need not be a test's.
func start(t testing.TB) *Service {
	t.Helper()
	s := &Service{T: t, Log: logtest.New(), DB: alltest.Database.New(t), Spool: wire.NewSpool(""), Words: new(Words)}
	logger := s.Words.Logger()
	var err error
	s.Vault, err = vault.Open(t.Context(), vault.Config{KeyFile: filepath.Join(t.TempDir(), "key"), DB: s.DB})
	must.NoError(t, err)
	s.Bucket = t.TempDir()
	s.files, err = blob.Open(t.Context(), blob.Directory(s.Bucket))
	must.NoError(t, err)
	s.Reads = projections.NewReads(s.DB)
	s.Consumers = consumer.New(s.DB, s.Log, logger, append(projections.All(), webhooks.NewSubscriber(s.DB, s.Log, BaseURL))...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- s.Consumers.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("projections: %v", err)
		}
	})
	s.Commands = s.Process(commandtest.AI{}) // which end first
	return s
}

// Process is the commands of one process on the service's log. They end with the service,
// or with the test whose it is.
func (s *Service) Process(ai command.AI) *command.Service {
	commands := command.New(command.Deps{
		Log: s.Log, Sealer: s.Vault, Tokens: s.Vault, Statuses: commandtest.CodeHost{}, AI: ai,
		Reads: projections.CommandReads{Reads: s.Reads}, Now: time.Now, ClaimsPerChecker: 1,
	})
	s.T.Cleanup(commands.Drain)
	return commands
}

// Evidence is the evidence as one process has it.
func (s *Service) Evidence(log logrus.FieldLogger) *evidence.Service {
	return evidence.New(evidence.Deps{
		DB: s.DB, Files: s.files, Commands: s.Commands, Vault: s.Vault, Spool: s.Spool, BaseURL: BaseURL, Log: log, Now: time.Now,
		WriteTime: eventually.Patience,
	})
}

// Deps are the dependencies of an API's handlers.
func (s *Service) Deps() v1.Shared {
	log := s.Words.Logger()
	return v1.Shared{
		Commands: s.Commands, Reads: s.Reads, DB: s.DB, Lent: s.DB, Evidence: s.Evidence(log), PastLog: s.Log, OwnLog: ownLog{s.Log},
		Head: func(context.Context) (domain.Position, error) { return s.Log.Head(), nil },
		Checkpoint: func(context.Context) (note, verifier string, err error) {
			return "humanqa/1\n3\ncm9vdA==\n\n— humanqa/1 c2lnbmVk\n", "humanqa/1+0a1b2c3d+a2V5", nil
		},
		Log: log, Now: time.Now, BaseURL: BaseURL,
	}
}

// WaitFor waits until the read models show the position, however busy the machine is.
func (s *Service) WaitFor(ctx context.Context, at domain.Position) error {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventually.Patience)
	defer cancel()
	return s.Consumers.WaitFor(patient, at)
}

// CatchUp waits until one consumer shows everything that earlier answers showed, however busy
// the machine is.
func (s *Service) CatchUp(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventually.Patience)
		defer cancel()
		return s.Consumers.CatchUp(patient, name)
	}
}

// Shown waits until every read model shows the events up to the position.
func (s *Service) Shown(at domain.Position, err error) {
	s.T.Helper()
	must.NoError(s.T, err)
	must.NoError(s.T, s.WaitFor(s.T.Context(), at))
}

// Operator is the cause of an operator's command.
func Operator() command.Cause {
	return command.Cause{CommandID: uuid.New(), Actor: "operator"}
}

// Account opens an account with credits.
func (s *Service) Account(amount domain.Credits, sandbox bool) (accountID string) {
	s.T.Helper()
	accountID, at, err := s.Commands.CreateAccount(s.T.Context(), Operator(), "acme", sandbox)
	s.Shown(at, err)
	s.mine.add(accountID, domain.AccountStream(accountID), domain.CreditsStream(accountID))
	if amount > 0 {
		_, at, err = s.Commands.GrantCredits(s.T.Context(), Operator(), accountID, amount, nil, "test")
		s.Shown(at, err)
	}
	return accountID
}

// Accounts are those that the test opened.
func (s *Service) Accounts() []string {
	s.mine.mu.Lock()
	defer s.mine.mu.Unlock()
	return slices.Clone(s.mine.accounts)
}

// Key issues a key of an account.
func (s *Service) Key(accountID string, in command.IssueKey) (token string) {
	s.T.Helper()
	k, err := s.Commands.IssueKey(s.T.Context(), Operator(), accountID, in)
	s.Shown(k.Position, err)
	return k.Token
}

// Checker makes a checker, who belongs to the accounts, and gives the key.
func (s *Service) Checker(accounts ...string) (token string) {
	s.T.Helper()
	c, err := s.Commands.CreateChecker(s.T.Context(), Operator(), "ann", accounts)
	s.Shown(c.Position, err)
	s.mine.add("", domain.CheckerStream(c.CheckerID))
	return c.Token
}

// Events are those that the log holds of the test's accounts and checkers, in its order.
func (s *Service) Events() (events []domain.Recorded) {
	if !s.scoped {
		return s.Log.All()
	}
	own := s.mine.set()
	for _, e := range s.Log.After(s.began) {
		if own[e.Stream] || own[domain.AccountStream(e.Meta.AccountID)] {
			own[e.Stream] = true // what a checker does to a job names no account
			events = append(events, e)
		}
	}
	return events
}

// Written is how many events there are.
func (s *Service) Written() int { return len(s.Events()) }

// Count is how many there are of a type.
func (s *Service) Count(eventType string) (n int) {
	for _, e := range s.Events() {
		if e.Type == eventType {
			n++
		}
	}
	return n
}

// Stored is all that the log holds of the events, as text.
func (s *Service) Stored() string {
	s.T.Helper()
	var b strings.Builder
	for _, e := range s.Events() {
		data, err := json.Marshal(e.Event)
		must.NoError(s.T, err)
		b.Write(data)
	}
	return b.String()
}

// belongings are a test's accounts, and the streams that begin with them and its checkers.
type belongings struct {
	mu       sync.Mutex
	accounts []string
	streams  []string
}

func (b *belongings) add(accountID string, streams ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if accountID != "" {
		b.accounts = append(b.accounts, accountID)
	}
	b.streams = append(b.streams, streams...)
}

func (b *belongings) set() map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	set := make(map[string]bool, len(b.streams))
	for _, stream := range b.streams {
		set[stream] = true
	}
	return set
}
