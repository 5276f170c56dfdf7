// Package clientlogin keeps sign-ins of the command line until a person confirms them on the
// dashboard (the device flow).
//
// The client holds the device code, a secret of 128 bits. A person compares the user code,
// which is short. The key is made when the client collects it, so no key is kept here. A
// collection whose answer is lost needs a new sign-in.
package clientlogin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/internal/pgpool"
)

const (
	// Life is how long a person has to confirm.
	Life = 10 * time.Minute
	// mostOpen bounds the sign-ins that wait at once: any client may begin one.
	mostOpen = 10_000
	// letters of a user code: no vowels, so no words, and none that look alike.
	letters    = "BCDFGHJKLMNPQRSTVWXZ"
	codeLength = 8
)

// Store keeps sign-ins in the database.
type Store struct {
	db  *sqlx.DB
	now func() time.Time
}

// NewStore makes the store.
func NewStore(db *sqlx.DB, now func() time.Time) *Store { return &Store{db, now} }

// Begun is a sign-in that waits.
type Begun struct {
	DeviceCode string
	UserCode   string // as people read it: XXXX-XXXX
}

// Approval is the key that a person allows the client, and that person.
type Approval struct {
	AccountID string        `json:"accountId"`
	PersonID  string        `json:"personId"`
	Sandbox   bool          `json:"sandbox"`
	Scope     account.Scope `json:"scope"`
	ProjectID string        `json:"projectId,omitempty"`
	KeyDays   int           `json:"keyDays,omitempty"` // 0: the key does not expire
	Name      string        `json:"name,omitempty"`    // of the key
}

// Waiting is a sign-in that a person looks at.
type Waiting struct {
	UserCode string `db:"user_code"`
	Client   string `db:"client"`
	Address  string `db:"address"`
}

// Begin opens a sign-in and removes those that are over.
func (s *Store) Begin(ctx context.Context, client, address string) (Begun, error) {
	full := &domain.Error{
		Kind: domain.KindRateLimited, Code: domain.CodeRateLimited, Message: "too many sign-ins are waiting",
		Hint: "try again in ten minutes, or use a key from the dashboard",
	}
	b, now := Begun{DeviceCode: rand.Text(), UserCode: newUserCode()}, s.now()
	return b, pgpool.ExecOne(ctx, s.db, full, "begin a sign-in", `
		WITH over AS (
			DELETE FROM signin.client_logins
			WHERE expires_at <= $7
		)
		INSERT INTO signin.client_logins (device_hash, user_code, client, address, command_id, expires_at)
		SELECT $1, $2, $3, $4, $5, $6
		WHERE (SELECT count(*) FROM signin.client_logins WHERE expires_at > $7) < $8`,
		domain.HashToken(b.DeviceCode), plain(b.UserCode), client, address, uuid.New(), now.Add(Life), now, mostOpen)
}

// newUserCode has about 35 bits, and lives for ten minutes. A guess needs a signed-in owner,
// and would sign the guesser's own account in.
func newUserCode() string {
	var b strings.Builder
	for b.Len() < codeLength {
		var one [1]byte
		_, _ = rand.Read(one[:]) // it never fails
		if one[0] < 240 {        // 12 times the letters: each is as likely
			b.WriteByte(letters[int(one[0])%len(letters)])
		}
	}
	code := b.String()
	return code[:codeLength/2] + "-" + code[codeLength/2:]
}

// plain is a user code as it is kept, however a person types it.
func plain(code string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(letters, c) {
			return c
		}
		return -1
	}, strings.ToUpper(code))
}

var errUnknown = domain.NotFound("sign-in").WithHint("it is over, or the code is wrong: run hqa login again")

// Find is the sign-in that a person named by its user code, while it waits.
func (s *Store) Find(ctx context.Context, userCode string) (w Waiting, err error) {
	w, err = pgpool.FindOr[Waiting](ctx, s.db, errUnknown, "a sign-in", `
		SELECT user_code, client, address
		FROM signin.client_logins
		WHERE user_code = $1 AND expires_at > $2 AND approval IS NULL AND NOT denied`, plain(userCode), s.now())
	if err != nil {
		return w, err
	}
	w.UserCode = w.UserCode[:codeLength/2] + "-" + w.UserCode[codeLength/2:]
	return w, nil
}

// Answer settles a sign-in by a person's word; nil denies it. The first answer counts.
func (s *Store) Answer(ctx context.Context, userCode string, approval *Approval) error {
	var stored *string
	if approval != nil {
		raw, err := json.Marshal(approval)
		if err != nil {
			return err
		}
		stored = new(string(raw))
	}
	return pgpool.ExecOne(ctx, s.db, errUnknown, "answer a sign-in", `
		UPDATE signin.client_logins
		SET approval = $3, denied = $4
		WHERE user_code = $1 AND expires_at > $2 AND approval IS NULL AND NOT denied`, plain(userCode), s.now(), stored, approval == nil)
}

// Collect gives the approval of a sign-in to the client that began it, once. A nil
// approval without an error: no person has answered yet.
func (s *Store) Collect(ctx context.Context, deviceCode string) (approval *Approval, commandID uuid.UUID, err error) {
	row, err := pgpool.FindOr[struct {
		Approval  []byte    `db:"approval"`
		Denied    bool      `db:"denied"`
		CommandID uuid.UUID `db:"command_id"`
	}](ctx, s.db, errUnknown, "a sign-in", `
		UPDATE signin.client_logins
		SET collected_at = CASE WHEN approval IS NOT NULL THEN $2::timestamptz END
		WHERE device_hash = $1 AND expires_at > $2 AND collected_at IS NULL
		RETURNING approval, denied, command_id`, domain.HashToken(deviceCode), s.now())
	switch {
	case err != nil:
		return nil, uuid.Nil, err
	case row.Denied:
		return nil, uuid.Nil, domain.Forbidden("the sign-in was denied").WithHint("ask the owner of the account, or run hqa login again")
	case row.Approval == nil:
		return nil, row.CommandID, nil
	}
	approval = new(Approval)
	return approval, row.CommandID, json.Unmarshal(row.Approval, approval)
}
