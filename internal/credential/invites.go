package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/domain/person"
	"humanqa/internal/pgpool"
)

// How long a one-time link works (decisions, "Way in").
const (
	LinkFor = 72 * time.Hour
	// FirstLinkFor is for the very first operator, whose link stands on a
	// terminal.
	FirstLinkFor = 30 * time.Minute
)

const insertInviteSQL = `
WITH closed AS (
    DELETE FROM signin.invites
    WHERE person_id = $2
      AND spent_at IS NULL
)
INSERT INTO signin.invites (hash, person_id, name, grants, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6)`

// Invite makes a one-time link for the person; an earlier one that is still open ends.
// name is the inviter's name for the person. grants are the rights that the inviter knows
// of: the link opens nothing once the person has other rights. The token is shown only
// here.
func (s *Store) Invite(ctx context.Context, personID, name string, grants []person.Grant, works time.Duration) (token string, err error) {
	token = domain.NewToken("")
	name = strings.TrimSpace(storable(name, MaxName))
	stored, err := json.Marshal(append([]person.Grant{}, grants...))
	if err != nil {
		return "", fmt.Errorf("encode what an invitation is for: %w", err)
	}
	now := s.time()
	return token, pgpool.Exec(ctx, s.db, "store an invitation", insertInviteSQL, domain.HashToken(token), personID, name, string(stored), now,
		now.Add(works))
}

const endInvitesSQL = `
UPDATE signin.invites
SET expires_at = LEAST(expires_at, $2)
WHERE person_id = $1
  AND spent_at IS NULL`

// EndLinks ends the person's open links, because the person's rights have changed. It
// waits for a join that is under way. The rows stay for a while: they hold the person's
// name.
func (s *Store) EndLinks(ctx context.Context, personID string) error {
	return pgpool.Exec(ctx, s.db, "end the open links of "+personID, endInvitesSQL, personID, s.time())
}

// Invitation is an open link. Looking at it does not spend it.
type Invitation struct {
	PersonID  string    `db:"person_id"`
	Name      string    `db:"name"`
	Grants    []byte    `db:"grants"` // that it was made for, in JSON
	ExpiresAt time.Time `db:"expires_at"`
}

const invitationSQL = `
SELECT person_id, name, grants, expires_at
FROM signin.invites
WHERE hash = $1
  AND spent_at IS NULL
  AND expires_at > $2`

// Invitation gives the open link of the token; ErrNoLink if there is none.
func (s *Store) Invitation(ctx context.Context, token string) (Invitation, error) {
	i, err := pgpool.FindOr[Invitation](ctx, s.db, ErrNoLink, "an invitation", invitationSQL, domain.HashToken(token), s.time())
	if err != nil {
		return Invitation{}, err
	}
	return i, s.stillFor(ctx, i)
}

// stillFor compares the rights that the link was made for with the person's rights in the
// log now. The holder of an old link must not get rights that the person got later.
func (s *Store) stillFor(ctx context.Context, i Invitation) error {
	var made []person.Grant
	if err := json.Unmarshal(i.Grants, &made); err != nil {
		return fmt.Errorf("read what an invitation is for: %w", err)
	}
	now, err := s.grants(ctx, i.PersonID)
	switch {
	case domain.IsKind(err, domain.KindNotFound):
		return ErrNoLink
	case err != nil:
		return fmt.Errorf("look up what an invitation's person may do: %w", err)
	case len(made) != len(now):
		return ErrNoLink
	}
	for _, g := range made {
		if !slices.Contains(now, g) {
			return ErrNoLink
		}
	}
	return nil
}

// Joining holds the name and the credentials that a person chooses when they spend a
// link.
type Joining struct {
	Name     string
	Login    string // with a password only
	Password string
}

// JoinWithPassword spends the link and gives its person a name, a login and a password,
// all or nothing. domain.KindInvalid names the fields to mend; the link is then still
// open. address is the source of the attempt. Attempts are counted by link and by
// address, so that a link tells which sign-in names there are no faster than the sign-in
// page does.
func (s *Store) JoinWithPassword(ctx context.Context, token string, in Joining, address string) (personID string, err error) {
	in.Name, in.Login = strings.TrimSpace(in.Name), nameOf(in.Login)
	if wrong := slices.Concat(checkName(in.Name), checkLogin(in.Login), checkPassword(in.Password)); len(wrong) > 0 {
		return "", domain.Invalid(wrong...)
	}
	i, err := s.Invitation(ctx, token)
	if err != nil {
		return "", err
	}
	from := counted{"address:" + address, freeByAddress}
	for _, c := range []counted{{"link:" + domain.HashToken(token), freeByName}, from} {
		if err := s.attempt(ctx, c); err != nil {
			return "", err
		}
	}
	if err := s.loginIsFree(ctx, i.PersonID, in.Login); err != nil {
		return "", err // before the work of hashing
	}
	hash, err := s.hash(ctx, in.Password)
	if err != nil {
		return "", err
	}
	err = pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if personID, err = s.spend(ctx, tx, token); err != nil {
			return err
		}
		if err := s.call(ctx, tx, personID, in.Name, &in.Login); err != nil {
			return err
		}
		return pgpool.Exec(ctx, tx, "set a password", setPasswordSQL, personID, hash, s.time())
	})
	if err != nil {
		return "", taken(err)
	}
	return personID, s.takeBack(ctx, from)
}

const loginTakenSQL = `
SELECT EXISTS (
    SELECT
    FROM signin.people
    WHERE login = ANY ($1)
      AND person_id <> $2)`

// loginIsFree refuses a sign-in name that is another person's, in any of its forms.
func (s *Store) loginIsFree(ctx context.Context, personID, login string) error {
	isTaken, err := pgpool.One[bool](ctx, s.db, "a sign-in name", loginTakenSQL, pq.Array(namesOf(login)), personID)
	if isTaken {
		err = errTaken
	}
	return err
}

func checkName(name string) []domain.Detail {
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return []domain.Detail{{Path: "name", Message: "must not be blank"}}
	case n > MaxName:
		return []domain.Detail{{Path: "name", Message: fmt.Sprintf("must have at most %d characters", MaxName)}}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return []domain.Detail{{Path: "name", Message: "must not have control characters"}}
	}
	return nil
}

const spendSQL = `
UPDATE signin.invites
SET spent_at = $2
WHERE hash = $1
  AND spent_at IS NULL
  AND expires_at > $2
RETURNING person_id, name, grants, expires_at`

const replaceSQL = `
WITH sessions  AS (DELETE FROM signin.sessions  WHERE person_id = $1),
     devices   AS (DELETE FROM signin.devices   WHERE person_id = $1),
     passwords AS (DELETE FROM signin.passwords WHERE person_id = $1),
     passkeys  AS (DELETE FROM signin.passkeys  WHERE person_id = $1)
UPDATE signin.people
SET login = NULL
WHERE person_id = $1`

// spend ends the link, once, and with it every other way in that its person had: another
// person may hold a lost passkey. The person's rights are looked up while the link's row
// is locked. A new role ends the links of its person. So either this join comes first, or
// it finds the role and is refused.
func (s *Store) spend(ctx context.Context, tx *sqlx.Tx, token string) (personID string, err error) {
	i, err := pgpool.FindOr[Invitation](ctx, tx, ErrNoLink, "an invitation", spendSQL, domain.HashToken(token), s.time())
	if err != nil {
		return "", err
	}
	if err := s.stillFor(ctx, i); err != nil {
		return "", err
	}
	return i.PersonID, pgpool.Exec(ctx, tx, "end earlier ways in", replaceSQL, i.PersonID)
}

const callSQL = `
INSERT INTO signin.people AS p (person_id, name, login)
VALUES ($1, $2, $3)
ON CONFLICT (person_id) DO UPDATE
SET name = EXCLUDED.name,
    login = COALESCE(EXCLUDED.login, p.login)`

const setPasswordSQL = `
INSERT INTO signin.passwords (person_id, hash, changed_at)
VALUES ($1, $2, $3)
ON CONFLICT (person_id) DO UPDATE
SET hash = EXCLUDED.hash,
    changed_at = EXCLUDED.changed_at`

// call stores the person's name, and the login if there is one.
func (s *Store) call(ctx context.Context, tx *sqlx.Tx, personID, name string, login *string) error {
	return pgpool.Exec(ctx, tx, "name person "+personID, callSQL, personID, name, login)
}

var errTaken = domain.Invalid(domain.Detail{Path: "login", Message: "is taken: choose another one"})

// taken turns the one conflict that a person can mend into words.
func taken(err error) error {
	if violates(err, "people_login_key") {
		return errTaken
	}
	return err
}

// violates says that the error is a second entry against the unique constraint.
func violates(err error, constraint string) bool {
	conflict, ok := errors.AsType[*pq.Error](err)
	return ok && conflict.Code.Name() == "unique_violation" && conflict.Constraint == constraint
}
