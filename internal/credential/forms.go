package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const (
	// FormFor is how long a form waits for the proof of its person.
	FormFor = FreshFor
	// formsKept is how many forms of a person wait at once: the newest.
	formsKept = 5
	// formsOwner is the owner of forms in the vault; no account has this id.
	formsOwner = "forms"
)

// Sealer is package internal/vault.
type Sealer interface {
	Seal(ctx context.Context, ownerID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, ownerID, stream, sealed string) ([]byte, error)
}

// Form is a form as a browser sent it.
type Form struct {
	Path      string `json:"path"` // with its query
	AccountID string `json:"account,omitempty"`
	Type      string `json:"type"` // the body's Content-Type
	From      string `json:"from"` // the page that it stood on, with its query
	Body      []byte `json:"body"`
}

// ErrNoForm refuses a form that does not wait: it was never sent in this session, it is
// used, or too old.
var ErrNoForm = domain.Conflict("this form does not wait any more").
	WithHint("it was carried out already, or ten minutes have passed: look at its page before you send it again")

func sealedForm(session Session, id uuid.UUID) string {
	return "form " + session.PersonID + " " + session.ID.String() + " " + id.String()
}

const keepFormSQL = `
WITH older AS (
    DELETE FROM signin.forms
    WHERE (session_id, id) IN (
        SELECT session_id, id
        FROM signin.forms
        WHERE person_id = $3
          AND (session_id, id) <> ($1, $2)
        ORDER BY expires_at DESC
        OFFSET $6)
)
INSERT INTO signin.forms (session_id, id, person_id, sealed, expires_at)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (session_id, id) DO UPDATE
SET sealed = EXCLUDED.sealed,
    expires_at = EXCLUDED.expires_at`

// KeepForm keeps a form sealed under its command's id, for the session that sent it and
// for FormFor. The same id again replaces it.
func (s *Store) KeepForm(ctx context.Context, session Session, id uuid.UUID, form Form) error {
	plain, err := json.Marshal(form)
	if err != nil {
		return fmt.Errorf("encode a form: %w", err)
	}
	sealed, err := s.sealer.Seal(ctx, formsOwner, sealedForm(session, id), plain)
	if err != nil {
		return fmt.Errorf("seal a form: %w", err)
	}
	return pgpool.Exec(ctx, s.db, "keep a form", keepFormSQL, session.ID, id, session.PersonID, sealed, s.time().Add(FormFor), formsKept-1)
}

const formSQL = `
SELECT sealed
FROM signin.forms
WHERE session_id = $1
  AND id = $2
  AND person_id = $3
  AND expires_at > $4`

// Form gives a form that waits in the session; ErrNoForm: there is none. It waits on
// until ForgetForm, so that a crash while it is carried out loses nothing.
func (s *Store) Form(ctx context.Context, session Session, id uuid.UUID) (form Form, err error) {
	sealed, err := pgpool.FindOr[string](ctx, s.db, ErrNoForm, "a form", formSQL, session.ID, id, session.PersonID, s.time())
	if err != nil {
		return form, err
	}
	plain, err := s.sealer.Unseal(ctx, formsOwner, sealedForm(session, id), sealed)
	switch {
	case errors.Is(err, domain.ErrUnsealable): // its row is not the one that was written
		return form, ErrNoForm
	case err != nil:
		return form, fmt.Errorf("open a form: %w", err)
	}
	return form, json.Unmarshal(plain, &form)
}

const forgetFormSQL = `
DELETE FROM signin.forms
WHERE session_id = $1
  AND id = $2`

// ForgetForm removes a form that was carried out.
func (s *Store) ForgetForm(ctx context.Context, session Session, id uuid.UUID) error {
	return pgpool.Exec(ctx, s.db, "forget a form", forgetFormSQL, session.ID, id)
}
