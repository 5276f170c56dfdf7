package credential

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lib/pq"
	"golang.org/x/crypto/argon2"

	"humanqa/domain"
	"humanqa/domain/identity"
	"humanqa/internal/pgpool"
)

// Parameters of new hashes (RFC 9106, section 4, the second choice).
const (
	argonMemory  = 64 << 10 // KiB
	argonTime    = 3
	argonThreads = 1
	saltBytes    = 16
	hashBytes    = 32

	// hashesAtOnce bounds the memory that sign-ins take: 64 MiB each.
	hashesAtOnce = 2
	// hashWait bounds the wait for a turn.
	hashWait = 10 * time.Second

	// MinPassword and MaxPassword are in characters; the longest is bounded
	// because hashing reads it all.
	MinPassword = 12
	MaxPassword = 256
	maxLogin    = 120
	MaxName     = 120
)

// checkPassword refuses a password that is too short or too long. Nothing else
// is asked of it: rules about digits make passwords worse (NIST SP 800-63B).
func checkPassword(password string) []domain.Detail {
	switch n := utf8.RuneCountInString(identity.Secret(password)); {
	case n < MinPassword:
		return []domain.Detail{{Path: "password", Message: fmt.Sprintf("must have at least %d characters", MinPassword)}}
	case n > MaxPassword:
		return []domain.Detail{{Path: "password", Message: fmt.Sprintf("must have at most %d characters", MaxPassword)}}
	}
	return nil
}

// turn waits for one of the places that hashing takes.
func (s *Store) turn(ctx context.Context) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, hashWait)
	defer cancel()
	select {
	case s.hashing <- struct{}{}:
		return func() { <-s.hashing }, nil
	case <-ctx.Done():
		return nil, domain.Unavailable(fmt.Errorf("wait to hash a password: %w", ctx.Err()))
	}
}

func (s *Store) hash(ctx context.Context, password string) (string, error) {
	leave, err := s.turn(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	var salt [saltBytes]byte
	_, _ = rand.Read(salt[:]) // never fails (crypto/rand)
	sum := argon2.IDKey([]byte(identity.Secret(password)), salt[:], argonTime, s.memory, argonThreads, hashBytes)
	return s.encoded(salt[:], sum), nil
}

func (s *Store) encoded(salt, sum []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, s.memory, argonTime, argonThreads,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum))
}

// nobody is a hash that no password has; comparing with it takes as long as with
// any other.
func (s *Store) nobody() string { return s.encoded(make([]byte, saltBytes), make([]byte, hashBytes)) }

// matches compares a password with a stored hash, under the hash's own
// parameters.
func (s *Store) matches(ctx context.Context, stored, password string) (bool, error) {
	var (
		version         int
		memory, rounds  uint32
		threads         uint8
		parts           = strings.Split(stored, "$")
		salt, want, got []byte
	)
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false, errors.New("a stored password is no argon2id hash")
	}
	_, errVersion := fmt.Sscanf(parts[2], "v=%d", &version)
	_, errParams := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &rounds, &threads)
	salt, errSalt := base64.RawStdEncoding.DecodeString(parts[4])
	want, errSum := base64.RawStdEncoding.DecodeString(parts[5])
	if err := errors.Join(errVersion, errParams, errSalt, errSum); err != nil || version != argon2.Version || len(want) == 0 {
		return false, fmt.Errorf("a stored password cannot be read: %w", err)
	}
	leave, err := s.turn(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	got = argon2.IDKey([]byte(password), salt, rounds, memory, threads, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

const loginSQL = `
SELECT login
FROM signin.people
WHERE login = ANY ($1)
ORDER BY array_position($1::text[], login)
LIMIT 1`

// storedLogin gives the sign-in name as it is stored: in today's form, or in one that an
// older version gave it. A name that nobody has is in today's form. Where the older form
// was another person's name, it stays theirs.
func (s *Store) storedLogin(ctx context.Context, typed string) (string, error) {
	login, found, err := pgpool.Find[string](ctx, s.db, "a sign-in name", loginSQL, pq.Array(namesOf(typed)))
	if !found {
		login = nameOf(typed)
	}
	return login, err
}

// nameOf is a typed sign-in name in today's form; namesOf gives those of older versions, too.
func nameOf(typed string) string { return identity.Name(storable(typed, 2*maxLogin)) }

func namesOf(typed string) []string {
	return append(identity.OlderNames(storable(typed, 2*maxLogin)), nameOf(typed))
}

// storable makes a text that Postgres takes out of a stranger's text.
func storable(text string, longest int) string {
	runes := []rune(strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?"))
	return string(runes[:min(longest, len(runes))])
}

// The name stays where another person has today's form.
const moveLoginSQL = `
UPDATE signin.people
SET login = $2
WHERE person_id = $1
  AND NOT EXISTS (SELECT FROM signin.people WHERE login = $2)`

const moveHashSQL = `
UPDATE signin.passwords
SET hash = $2
WHERE person_id = $1
  AND hash = $3`

const passwordByLoginSQL = `
SELECT w.person_id, w.hash
FROM signin.people p
JOIN signin.passwords w ON w.person_id = p.person_id
WHERE p.login = $1`

const passwordByPersonSQL = `
SELECT person_id, hash
FROM signin.passwords
WHERE person_id = $1`

// SignIn gives the person with the login and the password. An unknown login takes as
// long, and gets the same answer. address is the source of the attempt, device the token
// that Remember gave that browser, or empty. A stranger who knows a name can have it
// paused. A browser in which its owner signed in before is counted by itself, so that the
// owner still comes in.
func (s *Store) SignIn(ctx context.Context, login, password, address, device string) (personID string, err error) {
	typed := login
	if login, err = s.storedLogin(ctx, typed); err != nil {
		return "", err
	}
	by := []counted{{"login:" + domain.HashToken(login), freeByName}, {"address:" + address, freeByAddress}}
	known, err := s.knows(ctx, device, login)
	if err != nil {
		return "", err
	}
	if known {
		by = []counted{{"device:" + domain.HashToken(device), freeByName}}
	}
	personID, err = s.prove(ctx, by, passwordByLoginSQL, login, password)
	if now := nameOf(typed); err == nil && now != login {
		err = pgpool.Exec(ctx, s.db, "move a sign-in name", moveLoginSQL, personID, now)
	}
	return personID, err
}

// ProvePassword says whether the password is the person's.
func (s *Store) ProvePassword(ctx context.Context, personID, password, address string) error {
	by := []counted{{"person:" + personID, freeByName}, {"address:" + address, freeByAddress}}
	_, err := s.prove(ctx, by, passwordByPersonSQL, personID, password)
	return err
}

// prove counts the attempt in each counter. A right guess clears the first counter, and
// the others lose that attempt.
func (s *Store) prove(ctx context.Context, by []counted, query, arg, password string) (string, error) {
	for _, c := range by {
		if err := s.attempt(ctx, c); err != nil {
			return "", err
		}
	}
	row := struct {
		PersonID string `db:"person_id"`
		Hash     string `db:"hash"`
	}{Hash: s.nobody()}
	if err := s.db.GetContext(ctx, &row, query, arg); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("look a password up: %w", err)
	}
	if utf8.RuneCountInString(password) > MaxPassword {
		password = "" // hashing reads it all; no stored one is that long
	}
	ok, err := s.matches(ctx, row.Hash, identity.Secret(password))
	for _, older := range identity.OlderSecrets(password) {
		if err != nil || ok || older == identity.Secret(password) {
			continue
		}
		if ok, err = s.matches(ctx, row.Hash, older); ok && row.PersonID != "" {
			err = s.moveHash(ctx, row.PersonID, row.Hash, password)
		}
	}
	switch {
	case err != nil:
		return "", err
	case !ok || row.PersonID == "":
		return "", ErrWrong
	}
	for _, c := range by[1:] {
		if err := s.takeBack(ctx, c); err != nil {
			return "", err
		}
	}
	return row.PersonID, s.forgive(ctx, by[0].who)
}

// moveHash hashes a password of an older version in today's form.
func (s *Store) moveHash(ctx context.Context, personID, older, password string) error {
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	return pgpool.Exec(ctx, s.db, "hash a password in today's form", moveHashSQL, personID, hash, older)
}

const hasPasswordSQL = `
SELECT EXISTS (SELECT FROM signin.passwords WHERE person_id = $1)`

// HasPassword says whether the person can prove themselves by one.
func (s *Store) HasPassword(ctx context.Context, personID string) (bool, error) {
	return pgpool.One[bool](ctx, s.db, "whether there is a password", hasPasswordSQL, personID)
}
