package credential

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// challengeFor is how long a browser may take to answer.
const challengeFor = 5 * time.Minute

// Passkeys says whether a browser that reached us under this host (with or
// without a port) can use passkeys: they are bound to one name.
func (s *Store) Passkeys(host string) bool {
	name, _, found := strings.Cut(host, ":")
	if !found {
		name = host
	}
	return s.passkeys != nil && strings.EqualFold(name, s.host)
}

// Challenge is a challenge for a browser to sign: Options go into navigator.credentials,
// Token comes back with its answer.
type Challenge struct {
	Token   string `json:"challenge"`
	Options any    `json:"options"`
}

// owner is a person in the form of the protocol.
type owner struct {
	id, name string
	keys     []webauthn.Credential
}

func (o owner) WebAuthnID() []byte                         { return []byte(o.id) }
func (o owner) WebAuthnName() string                       { return o.name }
func (o owner) WebAuthnDisplayName() string                { return o.name }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.keys }

// storedChallenge is a challenge as it is kept: what the protocol must remember, and the
// name that a new person gave.
type storedChallenge struct {
	Session webauthn.SessionData `json:"session"`
	Name    string               `json:"name,omitempty"`
}

var errNoPasskeys = domain.Conflict("passkeys do not work at this address").WithHint("choose a password")

const insertChallengeSQL = `
INSERT INTO signin.challenges (hash, purpose, data, expires_at)
VALUES ($1, $2, $3, $4)`

const takeChallengeSQL = `
DELETE FROM signin.challenges
WHERE hash = $1
  AND purpose = $2
  AND expires_at > $3
RETURNING data`

func (s *Store) ask(ctx context.Context, purpose string, stored storedChallenge, options any) (Challenge, error) {
	data, err := json.Marshal(stored)
	if err != nil {
		return Challenge{}, fmt.Errorf("encode a challenge: %w", err)
	}
	c := Challenge{Token: domain.NewToken(""), Options: options}
	return c, pgpool.Exec(ctx, s.db, "store a challenge", insertChallengeSQL, domain.HashToken(c.Token), purpose, string(data),
		s.time().Add(challengeFor))
}

// takeChallenge gives the challenge back, once.
func (s *Store) takeChallenge(ctx context.Context, token, purpose string) (stored storedChallenge, err error) {
	data, err := pgpool.FindOr[[]byte](ctx, s.db, ErrWrong,
		"a challenge", takeChallengeSQL, domain.HashToken(token), purpose, s.time())
	if err != nil {
		return stored, err
	}
	return stored, json.Unmarshal(data, &stored)
}

// AskToJoin asks a browser for a new passkey of the link's person. The link
// stays open until the answer.
func (s *Store) AskToJoin(ctx context.Context, link, name string) (Challenge, error) {
	if s.passkeys == nil {
		return Challenge{}, errNoPasskeys
	}
	name = strings.TrimSpace(name)
	if wrong := checkName(name); len(wrong) > 0 {
		return Challenge{}, domain.Invalid(wrong...)
	}
	i, err := s.Invitation(ctx, link)
	if err != nil {
		return Challenge{}, err
	}
	options, session, err := s.passkeys.BeginRegistration(owner{id: i.PersonID, name: name})
	if err != nil {
		return Challenge{}, fmt.Errorf("ask for a new passkey: %w", err)
	}
	return s.ask(ctx, "join:"+domain.HashToken(link), storedChallenge{Session: *session, Name: name}, options.Response)
}

// JoinWithPasskey spends the link with the browser's answer, all or nothing.
func (s *Store) JoinWithPasskey(ctx context.Context, link, challenge string, answer []byte) (personID string, err error) {
	asked, add, err := s.newPasskey(ctx, challenge, "join:"+domain.HashToken(link), "", answer)
	if err != nil {
		return "", err
	}
	err = pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if personID, err = s.spend(ctx, tx, link); err != nil {
			return err
		}
		if personID != string(asked.Session.UserID) {
			return ErrWrong
		}
		if err := s.call(ctx, tx, personID, asked.Name, nil); err != nil {
			return err
		}
		return add(tx, personID)
	})
	return personID, inUse(err)
}

// AskToSignIn asks a browser for any passkey it has for us.
func (s *Store) AskToSignIn(ctx context.Context) (Challenge, error) {
	if s.passkeys == nil {
		return Challenge{}, errNoPasskeys
	}
	options, session, err := s.passkeys.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return Challenge{}, fmt.Errorf("ask for a passkey: %w", err)
	}
	return s.ask(ctx, "sign-in", storedChallenge{Session: *session}, options.Response)
}

const passkeySQL = `
SELECT person_id, credential
FROM signin.passkeys
WHERE credential_id = $1`

const usedPasskeySQL = `
UPDATE signin.passkeys
SET credential = $2,
    used_at = $3
WHERE credential_id = $1`

// SignInWithPasskey says whose passkey has answered the challenge.
func (s *Store) SignInWithPasskey(ctx context.Context, challenge string, answer []byte) (personID string, err error) {
	if s.passkeys == nil {
		return "", errNoPasskeys
	}
	a, err := s.takeChallenge(ctx, challenge, "sign-in")
	if err != nil {
		return "", err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return "", refused(err)
	}
	var broken error // a fault of ours in the look-up of the key
	_, key, err := s.passkeys.ValidatePasskeyLogin(func(rawID, handle []byte) (webauthn.User, error) {
		row, found, err := pgpool.Find[struct {
			PersonID   string `db:"person_id"`
			Credential []byte `db:"credential"`
		}](ctx, s.db, "a passkey", passkeySQL, rawID)
		if broken = err; err != nil {
			return nil, err
		}
		if !found || row.PersonID != string(handle) {
			return nil, ErrWrong
		}
		o := owner{id: row.PersonID, keys: make([]webauthn.Credential, 1)}
		if broken = json.Unmarshal(row.Credential, &o.keys[0]); broken != nil {
			return nil, broken
		}
		if o.keys[0].Flags.BackupEligible != parsed.Response.AuthenticatorData.Flags.HasBackupEligible() {
			broken = errChanged
			return nil, broken
		}
		personID = row.PersonID
		return o, nil
	}, a.Session, parsed)
	switch {
	case broken != nil:
		return "", broken
	case err != nil:
		return "", refused(err)
	case key.Authenticator.CloneWarning:
		return "", errChanged
	}
	stored, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("encode a passkey: %w", err)
	}
	return personID, pgpool.Exec(ctx, s.db, "note a passkey's use", usedPasskeySQL, key.ID, string(stored), s.time())
}

// errChanged refuses a passkey that a program synchronises since, or whose counter fell as
// that of a copy does. Its person cannot mend that, and needs another way in.
var errChanged = domain.Unauthorized("this passkey has changed since you made it here: it is synchronised now, or it may be a copy").
	WithHint("sign in in another way and make a new passkey; without another way, ask for a new link to sign in by")

// refused keeps the reason for the log only.
func refused(cause error) error {
	e := *ErrWrong
	e.Cause = cause
	return &e
}

const hasPasskeySQL = `
SELECT EXISTS (SELECT FROM signin.passkeys WHERE person_id = $1)`

// HasPasskey says whether the person can prove themselves by one.
func (s *Store) HasPasskey(ctx context.Context, personID string) (bool, error) {
	return pgpool.One[bool](ctx, s.db, "whether there is a passkey", hasPasskeySQL, personID)
}
