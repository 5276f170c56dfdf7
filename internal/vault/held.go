package vault

import (
	"context"
	"fmt"
	"time"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const holdSecret = `
	INSERT INTO vault.held (account_id, name, sealed, expires_at)
	VALUES ($1, $2, $3, now() + make_interval(secs => $4))
	ON CONFLICT (account_id, name) DO UPDATE
	SET sealed = EXCLUDED.sealed,
	    expires_at = EXCLUDED.expires_at`

// Hold keeps a secret of the account under a name, at most for the given time. use names the
// purpose of the secret: under another use it does not open. A later secret of that name
// replaces it. The row is committed before Hold returns.
func (v *Vault) Hold(ctx context.Context, accountID, name, use string, secret []byte, atMost time.Duration) error {
	sealed, err := v.Seal(ctx, accountID, heldContext(name, use), secret)
	if err != nil {
		return err
	}
	return pgpool.Exec(ctx, v.keys.db, "hold "+name, holdSecret, accountID, name, sealed, atMost.Seconds())
}

// heldContext binds a held secret to its name and its use.
func heldContext(name, use string) string { return "held\n" + name + "\n" + use }

const selectHeld = `
	SELECT sealed
	FROM vault.held
	WHERE account_id = $1
	  AND name = $2
	  AND expires_at > now()`

// Held opens a secret that is still kept. domain.ErrShredded says that it is forgotten.
func (v *Vault) Held(ctx context.Context, accountID, name, use string) ([]byte, error) {
	sealed, err := pgpool.FindOr[string](ctx, v.keys.db, fmt.Errorf("%s is not held any more: %w", name, domain.ErrShredded),
		"the held "+name, selectHeld, accountID, name)
	if err != nil {
		return nil, err
	}
	return v.Unseal(ctx, accountID, heldContext(name, use), sealed)
}

const forgetHeld = `
	DELETE FROM vault.held
	WHERE account_id = $1
	  AND name = $2`

// Forget deletes a held secret. A repeat does nothing. A crash of Postgres right after it
// may bring the row back until it expires.
func (v *Vault) Forget(ctx context.Context, accountID, name string) error {
	return pgpool.Exec(ctx, v.keys.db, "forget "+name, forgetHeld, accountID, name)
}

const forgetExpired = `
	DELETE FROM vault.held
	WHERE expires_at <= now()`

// ForgetExpired deletes the held secrets whose time is over.
func (v *Vault) ForgetExpired(ctx context.Context) error {
	return pgpool.Exec(ctx, v.keys.db, "forget expired secrets", forgetExpired)
}
