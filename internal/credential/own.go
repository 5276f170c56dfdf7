package credential

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// passkeysEach bounds the passkeys of a person.
const passkeysEach = 20

// Passkey is one of a person's passkeys. ID is its credential's, as base64url.
type Passkey struct {
	ID         string    `db:"id"`
	Name       string    `db:"name"`       // empty: none was given
	Credential []byte    `db:"credential"` // as the library has it
	CreatedAt  time.Time `db:"created_at"`
	UsedAt     time.Time `db:"used_at"`
}

const renameSQL = `
UPDATE signin.people
SET name = $2
WHERE person_id = $1`

// Rename stores a new name of a person who has joined.
func (s *Store) Rename(ctx context.Context, personID, name string) error {
	name = strings.TrimSpace(name)
	if wrong := checkName(name); len(wrong) > 0 {
		return domain.Invalid(wrong...)
	}
	return pgpool.Exec(ctx, s.db, "rename person "+personID, renameSQL, personID, name)
}

func checkLogin(login string) []domain.Detail {
	switch n := utf8.RuneCountInString(login); {
	case n < 3:
		return []domain.Detail{{Path: "login", Message: "must have at least 3 characters"}}
	case n > maxLogin:
		return []domain.Detail{{Path: "login", Message: fmt.Sprintf("must have at most %d characters", maxLogin)}}
	case strings.ContainsFunc(login, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return []domain.Detail{{Path: "login", Message: "must not have blanks in it"}}
	}
	return nil
}

const setLoginSQL = `
UPDATE signin.people
SET login = $2
WHERE person_id = $1`

// SetPassword gives a person a sign-in name and a password, or others. The caller has
// asked for a fresh proof. Sign-in names that are taken are counted as attempts of the
// person, so that this tells them no faster than the sign-in page does.
func (s *Store) SetPassword(ctx context.Context, personID, login, password string) error {
	login = nameOf(login)
	if wrong := append(checkLogin(login), checkPassword(password)...); len(wrong) > 0 {
		return domain.Invalid(wrong...)
	}
	from := counted{"password:" + personID, freeByName}
	if err := s.attempt(ctx, from); err != nil {
		return err
	}
	if err := s.loginIsFree(ctx, personID, login); err != nil {
		return err
	}
	hash, err := s.hash(ctx, password)
	if err != nil {
		return err
	}
	err = pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, setLoginSQL, personID, login); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "set a password", setPasswordSQL, personID, hash, s.time())
	})
	if err != nil {
		return taken(err)
	}
	return s.forgive(ctx, from.who)
}

const passkeysSQL = `
SELECT translate(encode(credential_id, 'base64'), E'+/=\n', '-_') AS id, name, credential, created_at, used_at
FROM signin.passkeys
WHERE person_id = $1
ORDER BY created_at, credential_id`

// PasskeysOf lists the person's passkeys, the oldest first.
func (s *Store) PasskeysOf(ctx context.Context, personID string) ([]Passkey, error) {
	return pgpool.List[Passkey](ctx, s.db, "the passkeys of "+personID, passkeysSQL, personID)
}

func addingPasskey(personID string) string { return "add:" + personID }

// AskForPasskey asks the browser of a signed-in person for one more passkey. A device
// that has one already makes no second.
func (s *Store) AskForPasskey(ctx context.Context, personID, name string) (Challenge, error) {
	if s.passkeys == nil {
		return Challenge{}, errNoPasskeys
	}
	has, err := s.PasskeysOf(ctx, personID)
	if err != nil {
		return Challenge{}, err
	}
	if len(has) >= passkeysEach {
		return Challenge{}, errManyPasskeys
	}
	person := owner{id: personID, name: name}
	for _, one := range has {
		var key webauthn.Credential
		if err := json.Unmarshal(one.Credential, &key); err != nil {
			return Challenge{}, fmt.Errorf("decode a passkey: %w", err)
		}
		person.keys = append(person.keys, key)
	}
	options, session, err := s.passkeys.BeginRegistration(person,
		webauthn.WithExclusions(webauthn.Credentials(person.keys).CredentialDescriptors()))
	if err != nil {
		return Challenge{}, fmt.Errorf("ask for a new passkey: %w", err)
	}
	return s.ask(ctx, addingPasskey(personID), storedChallenge{Session: *session}, options.Response)
}

var errManyPasskeys = domain.Conflict("you have %d passkeys", passkeysEach).WithHint("remove one that you do not use")

const addPasskeySQL = `
INSERT INTO signin.passkeys (credential_id, person_id, credential, name, created_at, used_at)
SELECT $1, $2, $3, $4, $5, $5
WHERE (SELECT COUNT(*) FROM signin.passkeys WHERE person_id = $2) < $6`

// AddPasskey gives the person the passkey of the browser's answer.
func (s *Store) AddPasskey(ctx context.Context, personID, name, challenge string, answer []byte) error {
	name = strings.TrimSpace(name)
	if wrong := checkName(name); len(wrong) > 0 {
		return domain.Invalid(wrong...)
	}
	_, add, err := s.newPasskey(ctx, challenge, addingPasskey(personID), name, answer)
	if err != nil {
		return err
	}
	return inUse(s.ofPerson(ctx, personID, func(tx *sqlx.Tx) error { return add(tx, personID) }))
}

// newPasskey takes the browser's answer to a challenge. add gives a person the new passkey.
func (s *Store) newPasskey(
	ctx context.Context, challenge, purpose, name string, answer []byte,
) (asked storedChallenge, add func(tx *sqlx.Tx, personID string) error, err error) {
	if s.passkeys == nil {
		return asked, nil, errNoPasskeys
	}
	if asked, err = s.takeChallenge(ctx, challenge, purpose); err != nil {
		return asked, nil, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return asked, nil, refused(err)
	}
	key, err := s.passkeys.CreateCredential(owner{id: string(asked.Session.UserID), name: asked.Name}, asked.Session, parsed)
	if err != nil {
		return asked, nil, refused(err)
	}
	stored, err := json.Marshal(key)
	if err != nil {
		return asked, nil, fmt.Errorf("encode a passkey: %w", err)
	}
	return asked, func(tx *sqlx.Tx, personID string) error {
		return pgpool.ExecOne(ctx, tx, errManyPasskeys, "add a passkey", addPasskeySQL, key.ID, personID, string(stored), name, s.time(),
			passkeysEach)
	}, nil
}

// inUse says in words that an authenticator gave a key an id that is taken.
func inUse(err error) error {
	if violates(err, "passkeys_pkey") {
		return domain.Conflict("this passkey is in use already").WithHint("make another one, or choose a password")
	}
	return err
}

const lockPersonSQL = `
SELECT
FROM signin.people
WHERE person_id = $1
FOR UPDATE`

// ofPerson changes a person's ways in, one change after the other.
func (s *Store) ofPerson(ctx context.Context, personID string, change func(*sqlx.Tx) error) error {
	return pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, lockPersonSQL, personID); err != nil {
			return err
		}
		return change(tx)
	})
}

var (
	errNoPasskey = domain.NotFound("passkey")
	errLastWay   = domain.Conflict("this is your only way to sign in").WithHint("add a password or another passkey first")
)

const namePasskeySQL = `
UPDATE signin.passkeys
SET name = $3
WHERE person_id = $1
  AND credential_id = $2`

// NamePasskey stores the person's name for one of their passkeys.
func (s *Store) NamePasskey(ctx context.Context, personID, id, name string) error {
	name = strings.TrimSpace(name)
	if wrong := checkName(name); len(wrong) > 0 {
		return domain.Invalid(wrong...)
	}
	key, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return errNoPasskey
	}
	return pgpool.ExecOne(ctx, s.db, errNoPasskey, "name a passkey", namePasskeySQL, personID, key, name)
}

const removePasskeySQL = `
DELETE FROM signin.passkeys
WHERE person_id = $1
  AND credential_id = $2`

const waysSQL = `
SELECT (SELECT COUNT(*) FROM signin.passkeys WHERE person_id = $1) + (SELECT COUNT(*) FROM signin.passwords WHERE person_id = $1)`

// RemovePasskey takes a passkey away from its person. The last way in stays.
func (s *Store) RemovePasskey(ctx context.Context, personID, id string) error {
	key, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil {
		return errNoPasskey
	}
	return s.ofPerson(ctx, personID, func(tx *sqlx.Tx) error {
		if err := pgpool.ExecOne(ctx, tx, errNoPasskey, "remove a passkey", removePasskeySQL, personID, key); err != nil {
			return err
		}
		left, err := pgpool.One[int](ctx, tx, "the ways to sign in", waysSQL, personID)
		if err == nil && left == 0 {
			err = errLastWay
		}
		return err
	})
}
