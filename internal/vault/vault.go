// Package vault seals secrets into the events that carry them.
//
// A secret (test credentials, access instructions, a webhook's signing secret) is
// encrypted with AES-256-GCM under a data key of its account. It is bound to the stream
// of its event: in another stream it does not open. The data key lives in Postgres,
// wrapped by the master keyset and bound to the account's id. The master keyset lives
// outside the database, in a file or where a program has it from (see keyset.go). So
//
//   - the log alone shows no secret, nor do the log and the database together;
//   - destroying an account's data key makes its secrets unreadable for good, while
//     their history stays whole.
//
// The row of a destroyed key stays, so that no other key takes its place. Links to
// evidence are signed with another key of the account. Events hold only the path of
// evidence.
//
// A data key is committed durably before its first ciphertext leaves Seal. A crash may
// leave an unused key, and never a ciphertext without its key.
//
// The free texts of a job or a checker are sealed with a key of that subject (see
// subjects.go), so that one subject can be erased alone.
//
// Opened data keys are cached for cacheFor. Shred forgets the key in its own process at
// once. Another process may open that account's secrets until its copy has expired.
package vault

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
)

// sealedV1 starts a sealed string: base64url (no padding) of tink's AES-GCM
// output, whose first five bytes name the key within the account's keyset.
const sealedV1 = "v1."

// fingerprintSize is HMAC-SHA256's, in bytes.
const fingerprintSize = 32

// Config names the keyset and the database of a vault.
type Config struct {
	// KeyFile holds the master keyset; it is made if it is missing.
	KeyFile string
	// KeyCommand is a program and its arguments, with blanks between. Its standard output is
	// the keyset. Empty: the file holds it.
	KeyCommand string
	// DB holds the wrapped data keys. The vault does not close it.
	DB *sqlx.DB
}

// Vault seals and opens secrets. It is safe for concurrent use.
type Vault struct {
	master   *master
	keys     *keyring
	subjects *subjects
}

// MACKeys gives the keys of the events' MACs, which prove that this service wrote them. Each
// stands under the id of the master key that it is derived from; primary makes new MACs. No
// database holds the keys. A wanted key that is not among them is looked for in the keyset
// once more; 0 wants none.
func (v *Vault) MACKeys(wanted uint32) (primary uint32, keys map[uint32][]byte) {
	k, _ := v.master.having(func(k *Keyset) bool { return wanted == 0 || k.macs[wanted] != nil })
	return k.current, k.macs
}

// Open reads the master keyset, or makes it on the first start. It checks that this keyset
// has every key that the database and its log rely on.
func Open(ctx context.Context, cfg Config) (*Vault, error) {
	m, err := openMaster(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &Vault{master: m, keys: newKeyring(cfg.DB, m), subjects: newSubjects(cfg.DB, m)}, nil
}

// FollowKeyset takes the current master key from the database, and reads the keyset again if
// this process lacks it.
func (v *Vault) FollowKeyset(ctx context.Context) error { return v.master.follow(ctx) }

// Seal encrypts a secret for the event of one stream of one account. The
// result is printable and safe to store; sealing twice gives two results.
func (v *Vault) Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error) {
	key, err := v.keys.getOrCreate(ctx, accountID)
	if err != nil {
		return "", err
	}
	ciphertext, err := key.aead.Encrypt(plaintext, []byte(stream))
	if err != nil {
		return "", fmt.Errorf("seal for %s: %w", stream, err)
	}
	return sealedV1 + base64.RawURLEncoding.EncodeToString(ciphertext), nil
}

// Unseal opens a secret that Seal sealed for the same account and stream.
// domain.ErrShredded says that the account no longer has the key of the secret.
func (v *Vault) Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(sealed, sealedV1)
	if !ok {
		return nil, fmt.Errorf("unseal for %s: unknown format: %w", stream, domain.ErrUnsealable)
	}
	ciphertext, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("unseal for %s: %w: %w", stream, domain.ErrUnsealable, err)
	}
	key, err := v.keys.get(ctx, accountID)
	if err != nil {
		return nil, fmt.Errorf("unseal for %s: %w", stream, err)
	}
	if !key.made(ciphertext) {
		// The account got a new key after its old one was shredded.
		return nil, fmt.Errorf("unseal for %s: %w", stream, domain.ErrShredded)
	}
	plaintext, err := key.aead.Decrypt(ciphertext, []byte(stream))
	if err != nil {
		return nil, fmt.Errorf("unseal for %s: %w: %w", stream, domain.ErrUnsealable, err)
	}
	return plaintext, nil
}

// Fingerprint gives a keyed hash (lower-case hex of HMAC-SHA256) that recognises the
// same secret of the same account without opening it. Without the account's key it
// says nothing about the secret.
//
// The use, which must not have a line break, separates fingerprints by purpose. A client
// that may choose a secret, and see its fingerprint, can never get one that we hand out
// as a token or a signature.
func (v *Vault) Fingerprint(ctx context.Context, accountID, use string, secret []byte) (string, error) {
	if strings.ContainsRune(use, '\n') {
		return "", fmt.Errorf("the use of a fingerprint is one line, not %q", use)
	}
	key, err := v.keys.getOrCreate(ctx, accountID)
	if err != nil {
		return "", err
	}
	sum, err := key.prf.ComputePrimaryPRF(append([]byte(use+"\n"), secret...), fingerprintSize)
	if err != nil {
		return "", fmt.Errorf("fingerprint for account %s: %w", accountID, err)
	}
	return hex.EncodeToString(sum), nil
}
