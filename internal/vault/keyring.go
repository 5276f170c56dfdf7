package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jmoiron/sqlx"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/prf"
	"github.com/tink-crypto/tink-go/v2/tink"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

const (
	// cacheFor bounds how long a process opens secrets of an account that
	// another process has shredded.
	cacheFor = 30 * time.Second
	// cacheSize accounts take a few MB.
	cacheSize = 10_000
)

// dataKey is one account's key, opened.
type dataKey struct {
	aead tink.AEAD
	prf  *prf.Set
	ids  map[uint32]bool // the keys of the keyset, by tink's id
}

// made says whether one of the account's keys made the ciphertext.
func (k *dataKey) made(ciphertext []byte) bool {
	id, named := keyOf(ciphertext)
	return named && k.ids[id]
}

// row is one account's key as the database holds it; without either keyset it
// was destroyed.
type row struct {
	AccountID   string `db:"account_id" json:"name"`
	Wrapped     []byte `db:"wrapped" json:"wrapped"`
	Fingerprint []byte `db:"fingerprint" json:"fingerprint"`
}

// The two keysets of a row are bound to the account and to their use: a row
// copied to another account, or with its columns swapped, does not open.
func dataContext(accountID string) []byte        { return []byte(accountID) }
func fingerprintContext(accountID string) []byte { return []byte("fingerprint/" + accountID) }

// keysets opens the two keysets of a row.
func (r *row) keysets(m *master) (data, fingerprint *keyset.Handle, err error) {
	data, err = keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(r.Wrapped)), m, dataContext(r.AccountID))
	if err != nil {
		return nil, nil, fmt.Errorf("open the data key of account %s: %w", r.AccountID, err)
	}
	fingerprint, err = keyset.ReadWithAssociatedData(
		keyset.NewBinaryReader(bytes.NewReader(r.Fingerprint)), m, fingerprintContext(r.AccountID))
	if err != nil {
		return nil, nil, fmt.Errorf("open the fingerprint key of account %s: %w", r.AccountID, err)
	}
	return data, fingerprint, nil
}

func (r *row) unwrap(m *master) (*dataKey, error) {
	data, fingerprint, err := r.keysets(m)
	if err != nil {
		return nil, err
	}
	k := &dataKey{ids: make(map[uint32]bool)}
	for _, info := range data.KeysetInfo().GetKeyInfo() {
		k.ids[info.GetKeyId()] = true
	}
	if k.aead, err = aead.New(data); err != nil {
		return nil, fmt.Errorf("open the data key of account %s: %w", r.AccountID, err)
	}
	if k.prf, err = prf.NewPRFSet(fingerprint); err != nil {
		return nil, fmt.Errorf("open the fingerprint key of account %s: %w", r.AccountID, err)
	}
	return k, nil
}

// newRow makes fresh keys for an account.
func newRow(m *master, accountID string) (*row, error) {
	data, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make a data key: %w", err)
	}
	fingerprint, err := keyset.NewHandle(prf.HMACSHA256PRFKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make a fingerprint key: %w", err)
	}
	return wrap(m, accountID, data, fingerprint)
}

// wrap seals an account's two keysets under the current master key.
func wrap(m *master, accountID string, data, fingerprint *keyset.Handle) (*row, error) {
	under := m.now.Load().aead // one key for both
	var wrapped, wrappedFingerprint bytes.Buffer
	err := data.WriteWithAssociatedData(keyset.NewBinaryWriter(&wrapped), under, dataContext(accountID))
	if err != nil {
		return nil, fmt.Errorf("wrap a data key: %w", err)
	}
	err = fingerprint.WriteWithAssociatedData(
		keyset.NewBinaryWriter(&wrappedFingerprint), under, fingerprintContext(accountID))
	if err != nil {
		return nil, fmt.Errorf("wrap a fingerprint key: %w", err)
	}
	return &row{AccountID: accountID, Wrapped: wrapped.Bytes(), Fingerprint: wrappedFingerprint.Bytes()}, nil
}

// keyring finds an account's key: in its cache, else in the database.
type keyring struct {
	db     *sqlx.DB
	master *master
	cache  *lru.Cache[string, cached]
}

type cached struct {
	key     *dataKey
	expires time.Time
}

func newKeyring(db *sqlx.DB, m *master) *keyring {
	cache, _ := lru.New[string, cached](cacheSize) // the size is positive
	return &keyring{db: db, master: m, cache: cache}
}

const selectDataKey = `
	SELECT account_id, wrapped, fingerprint
	FROM vault.data_keys
	WHERE account_id = $1`

// errNoKey says that the account never had a key.
var errNoKey = fmt.Errorf("%w: the account has no key", domain.ErrShredded)

// get gives the account's key, or domain.ErrShredded when it has none (any more).
func (k *keyring) get(ctx context.Context, accountID string) (*dataKey, error) {
	if c, ok := k.cache.Get(accountID); ok && time.Now().Before(c.expires) {
		return c.key, nil
	}
	r, found, err := pgpool.Find[row](ctx, k.db, "the data key of account "+accountID, selectDataKey, accountID)
	switch {
	case err != nil:
		return nil, err
	case !found:
		k.cache.Remove(accountID)
		return nil, errNoKey
	case r.Wrapped == nil:
		k.cache.Remove(accountID)
		return nil, domain.ErrShredded
	}
	key, err := r.unwrap(k.master)
	if err != nil {
		return nil, err
	}
	k.cache.Add(accountID, cached{key: key, expires: time.Now().Add(cacheFor)})
	return key, nil
}

// getOrCreate is get for writers; a key that was destroyed is not made anew. Two
// writers that create at once both get the row that won: the loser's insert
// waits for the winner's commit, and then does nothing. An insert under a master key that is
// no longer current does nothing either: it comes again under the current one.
func (k *keyring) getOrCreate(ctx context.Context, accountID string) (*dataKey, error) {
	key, err := k.get(ctx, accountID)
	for try := 0; errors.Is(err, errNoKey) && try < wrapTries; try++ {
		if try > 0 {
			if err := k.master.follow(ctx); err != nil {
				return nil, err
			}
		}
		var r *row
		if r, err = newRow(k.master, accountID); err != nil {
			return nil, err
		}
		// A data key must outlive every ciphertext made with it.
		err = pgpool.Exec(ctx, k.db, "store the data key of account "+accountID, insertDataKey, r.AccountID, r.Wrapped, r.Fingerprint)
		if err != nil {
			return nil, err
		}
		key, err = k.get(ctx, accountID)
	}
	return key, err
}

// wrapTries is how often a new key is wrapped before its writer gives up. The second time it
// is under the current master key, unless that changes again meanwhile.
const wrapTries = 3

// A wrapped keyset is tink's EncryptedKeyset: three bytes stand before its ciphertext. The lock
// makes a change of the current master key wait for the insert, and the insert for the change.
const insertDataKey = `
	INSERT INTO vault.data_keys (account_id, wrapped, fingerprint)
	SELECT $1::text, $2::bytea, $3::bytea
	FROM vault.master_proof
	WHERE substring(proof FROM 1 FOR 5) = substring($2::bytea FROM 4 FOR 5)
	FOR SHARE
	ON CONFLICT (account_id) DO NOTHING`

const shredDataKey = `
	WITH held AS (
		DELETE FROM vault.held
		WHERE account_id = $1
	)
	INSERT INTO vault.data_keys (account_id, shredded_at)
	VALUES ($1, now())
	ON CONFLICT (account_id) DO UPDATE
	SET wrapped = NULL,
	    fingerprint = NULL,
	    shredded_at = COALESCE(data_keys.shredded_at, now())`

// Shred destroys the account's data key, for good: secrets sealed with it never
// open again, and none is sealed for the account any more. A repeat does nothing.
func (v *Vault) Shred(ctx context.Context, accountID string) error {
	if err := pgpool.Exec(ctx, v.keys.db, "shred the data key of account "+accountID, shredDataKey, accountID); err != nil {
		return err
	}
	v.keys.cache.Remove(accountID)
	return nil
}

const selectShredded = `
	SELECT account_id
	FROM vault.data_keys
	WHERE shredded_at IS NOT NULL`

// Shredded lists the accounts whose data key was destroyed.
func (v *Vault) Shredded(ctx context.Context) (map[string]bool, error) {
	return pgpool.Set(ctx, v.keys.db, "the accounts whose data key was destroyed", selectShredded)
}
