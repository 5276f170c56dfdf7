// Package credential is the sign-in of people: one-time links, passwords, passkeys, and
// the sessions that follow. The log decides about their rights (domain/person). The
// data here are rows of schema signin, which can be erased without a change of history.
// A link names its purpose and is compared with the log in the transaction that spends
// it.
//
// A reader of the database learns no secret. Tokens have 256 bits and are kept as
// SHA-256, passwords as argon2id, and passkeys are public keys.
//
// A row decides each race. One UPDATE that finds a link unspent spends it. One DELETE
// takes a challenge. An attempt is counted before the password is compared. So a
// hundred requests at once guess no more than one.
package credential

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/pgpool"
)

// Config holds the dependencies of a Store. All fields are required.
type Config struct {
	DB  *sqlx.DB
	Now func() time.Time
	// BaseURL is where people reach the pages; passkeys are bound to its host.
	BaseURL string
	// Grants gives the rights that a person has in the log now; domain.KindNotFound where
	// they are disabled, or not there.
	Grants func(ctx context.Context, personID string) ([]person.Grant, error)
	// Sealer seals forms that wait for a proof.
	Sealer Sealer
	// HashMemory is the memory that hashing a new password takes, in KiB; zero is 64 MiB.
	// Tests take less: at the default each hash takes a tenth of a second.
	HashMemory uint32
}

// Store keeps credentials. It may be used by many goroutines.
type Store struct {
	db       *sqlx.DB
	now      func() time.Time
	grants   func(context.Context, string) ([]person.Grant, error)
	sealer   Sealer
	passkeys *webauthn.WebAuthn // nil where browsers would refuse them
	host     string             // which they are bound to
	hashing  chan struct{}
	memory   uint32 // KiB, of new hashes
}

// Open makes a Store.
func Open(c Config) (*Store, error) {
	s := &Store{db: c.DB, now: c.Now, grants: c.Grants, sealer: c.Sealer, hashing: make(chan struct{}, hashesAtOnce),
		memory: cmp.Or(c.HashMemory, argonMemory)}
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the base URL: %w", err)
	}
	host := base.Hostname()
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		host = "localhost" // what the pages call this machine
	}
	if net.ParseIP(host) != nil {
		return s, nil // no passkeys on an IP address
	}
	origin := base.Scheme + "://" + host
	if port := base.Port(); port != "" {
		origin += ":" + port
	}
	s.host = host
	s.passkeys, err = webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: "humanqa", RPOrigins: []string{origin},
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set passkeys up: %w", err)
	}
	return s, nil
}

// ErrWrong refuses a proof. It never says what was wrong with it.
var ErrWrong = domain.Unauthorized("that did not work").WithHint("check the name and the password, or use your passkey")

// ErrNoLink refuses a link that does not lead anywhere.
var ErrNoLink = domain.NotFound("invitation").WithHint("a link works once, and not for ever: ask for a new one")

func (s *Store) time() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// Person holds the names of a person.
type Person struct {
	ID    string  `db:"person_id"`
	Name  string  `db:"name"`
	Login *string `db:"login"` // nil: they have no password
}

const namesSQL = `
SELECT DISTINCT ON (person_id) person_id, name, login
FROM (
    SELECT person_id, name, login, true AS joined
    FROM signin.people
    WHERE person_id = ANY($1)
    UNION ALL
    SELECT person_id, name, '', false
    FROM signin.invites
    WHERE person_id = ANY($1)
      AND spent_at IS NULL) AS called
ORDER BY person_id, joined DESC`

// Names gives the names of people, by id: the chosen name of a person who has joined,
// else the name that the inviter wrote. An erased person has no entry. A person may also be
// named as an actor (person:ID, operator:ID); other actors have no entry.
func (s *Store) Names(ctx context.Context, people ...string) (map[string]Person, error) {
	ids := make([]string, len(people))
	for i, one := range people {
		ids[i] = strings.TrimPrefix(strings.TrimPrefix(one, "person:"), "operator:")
	}
	found, err := pgpool.List[Person](ctx, s.db, "names", namesSQL, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	names := make(map[string]Person, len(found))
	for _, p := range found {
		names[p.ID] = p
	}
	return names, nil
}

const eraseSQL = `
WITH sessions   AS (DELETE FROM signin.sessions  WHERE person_id = $1),
     passwords  AS (DELETE FROM signin.passwords WHERE person_id = $1),
     passkeys   AS (DELETE FROM signin.passkeys  WHERE person_id = $1),
     invites    AS (DELETE FROM signin.invites   WHERE person_id = $1),
     devices    AS (DELETE FROM signin.devices   WHERE person_id = $1),
     shares     AS (DELETE FROM signin.shares    WHERE person_id = $1),
     views      AS (DELETE FROM desk.views       WHERE person_id = $1),
     seen       AS (DELETE FROM desk.seen        WHERE person_id = $1),
     notices    AS (DELETE FROM mail.notices     WHERE person_id = $1),
     letters    AS (DELETE FROM mail.letters     WHERE person_id = $1),
     choices    AS (DELETE FROM mail.choices     WHERE person_id = $1),
     addresses  AS (DELETE FROM mail.people      WHERE person_id = $1),
     drafts     AS (DELETE FROM desk.drafts      WHERE person_id = $1)
DELETE FROM signin.people
WHERE person_id = $1`

// Erase forgets a person: their name, their proofs, their sessions, and what
// they kept of the pages, with their address for e-mail and the letters to it.
func (s *Store) Erase(ctx context.Context, personID string) error {
	return pgpool.Exec(ctx, s.db, "erase person "+personID, eraseSQL, personID)
}

const eraseAccountSQL = `
WITH shares   AS (DELETE FROM signin.shares WHERE account_id = $1 RETURNING 1),
     views    AS (DELETE FROM desk.views    WHERE account_id = $1 RETURNING 1),
     seen     AS (DELETE FROM desk.seen     WHERE account_id = $1 RETURNING 1),
     notices  AS (DELETE FROM mail.notices  WHERE account_id = $1 RETURNING 1),
     choices  AS (DELETE FROM mail.choices  WHERE account_id = $1 RETURNING 1),
     drafts   AS (DELETE FROM desk.drafts   WHERE account_id = $1 RETURNING 1),
     sessions AS (UPDATE signin.sessions SET account_id = '' WHERE account_id = $1 RETURNING 1)
SELECT (SELECT COUNT(*) FROM shares) + (SELECT COUNT(*) FROM views) + (SELECT COUNT(*) FROM seen)
     + (SELECT COUNT(*) FROM notices) + (SELECT COUNT(*) FROM choices) + (SELECT COUNT(*) FROM drafts) + (SELECT COUNT(*) FROM sessions)`

// EraseAccount forgets what people keep of an account, and the links to its
// reports. It says how many rows that were.
func (s *Store) EraseAccount(ctx context.Context, accountID string) (rows int, err error) {
	return pgpool.One[int](ctx, s.db, "how many rows were erased of account "+accountID, eraseAccountSQL, accountID)
}

const sweepSQL = `
WITH sessions   AS (DELETE FROM signin.sessions   WHERE expires_at <= $1 OR seen_at <= $2),
     challenges AS (DELETE FROM signin.challenges WHERE expires_at <= $1),
     forms      AS (DELETE FROM signin.forms      WHERE expires_at <= $1),
     shares     AS (DELETE FROM signin.shares     WHERE expires_at <= $1),
     invites    AS (DELETE FROM signin.invites    WHERE expires_at <= $3),
     devices    AS (DELETE FROM signin.devices    WHERE seen_at <= $5)
DELETE FROM signin.attempts
WHERE last_at <= $4
  AND free_at <= $1`

// keepSpent is how long a link that is over can still be told from one that
// never was.
const keepSpent = 30 * 24 * time.Hour

// Sweep removes rows that are over.
func (s *Store) Sweep(ctx context.Context) error {
	now := s.time()
	return pgpool.Exec(ctx, s.db, "sweep what sign-ins left", sweepSQL,
		now, now.Add(-idleFor), now.Add(-keepSpent), now.Add(-forgetAfter), now.Add(-DeviceFor))
}
