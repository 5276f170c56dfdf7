package auditlog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/eventstore"
	"humanqa/internal/pgpool"
	"humanqa/internal/vault"
)

// sealedFor is the owner of the signing key in the vault; no account has this id.
const sealedFor = "audit"

// ErrForked says that the tree does not continue the signed checkpoints.
var ErrForked = errors.New("the log is not the one that was signed")

// Signer signs checkpoints, in any number of processes at once.
type Signer struct {
	db   *sqlx.DB
	log  *eventstore.Client
	seal *vault.Vault // keeps the signing key from readers of the database
	now  func() time.Time
}

// NewSigner prepares a signer; the first Sign of a log makes its key.
func NewSigner(db *sqlx.DB, log *eventstore.Client, seal *vault.Vault, now func() time.Time) *Signer {
	return &Signer{db: db, log: log, seal: seal, now: now}
}

const keySQL = `
SELECT name, verifier, sealed
FROM audit.keys`

const insertKeySQL = `
INSERT INTO audit.keys (name, verifier, sealed)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`

type keyRow struct{ Name, Verifier, Sealed string }

// Verifier is the verifier key of checkpoints: the log's name and public key. The first
// call makes the key.
func (s *Signer) Verifier(ctx context.Context) (string, error) {
	row, err := s.key(ctx)
	return row.Verifier, err
}

func (s *Signer) key(ctx context.Context) (keyRow, error) {
	row, found, err := pgpool.Find[keyRow](ctx, s.db, "the log's key", keySQL)
	if err != nil || found {
		return row, err
	}
	random := make([]byte, 6)
	_, _ = rand.Read(random) // it never fails
	name := "humanqa/" + hex.EncodeToString(random)
	private, verifier, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		return row, fmt.Errorf("make the log's key: %w", err)
	}
	sealed, err := s.seal.Seal(ctx, sealedFor, name, []byte(private))
	if err != nil {
		return row, err
	}
	err = pgpool.InTx(ctx, s.db, func(tx *sqlx.Tx) error {
		if err := pgpool.Exec(ctx, tx, "store the log's key", insertKeySQL, name, verifier, sealed); err != nil {
			return err
		}
		row, err = pgpool.One[keyRow](ctx, tx, "the log's key", keySQL) // another process may have been first
		return err
	})
	return row, err
}

const newestSQL = `
SELECT note
FROM audit.checkpoints
ORDER BY size DESC
LIMIT 1`

// Newest is the checkpoint that was signed last; found is false before the first one.
func (s *Signer) Newest(ctx context.Context) (c Checkpoint, found bool, err error) {
	signed, found, err := pgpool.Find[string](ctx, s.db, "the newest checkpoint", newestSQL)
	if err != nil || !found {
		return Checkpoint{}, false, err
	}
	key, err := s.key(ctx)
	if err != nil {
		return Checkpoint{}, false, err
	}
	c, err = Open(signed, key.Verifier)
	return c, err == nil, err
}

// Latest is the newest checkpoint. If there is none, it signs the first one.
func (s *Signer) Latest(ctx context.Context) (c Checkpoint, found bool, err error) {
	if c, found, err = s.Newest(ctx); found || err != nil {
		return c, found, err
	}
	return s.Sign(ctx)
}

const insertCheckpointSQL = `
WITH added AS (
    INSERT INTO audit.checkpoints (size, note)
    VALUES ($1, $2)
    ON CONFLICT DO NOTHING
    RETURNING size)
UPDATE audit.keys
SET signed = signed + 1,
    signed_size = greatest(signed_size, added.size)
FROM added`

// Sign signs the current tree. It gives the newest checkpoint if no event has come after
// it; found is false while the log is empty. The events behind the newest checkpoint are
// read from the log itself. A tree that lacks them, or does not continue the checkpoint,
// is ErrForked. An event from another writer is domain.ErrForged. Neither is signed.
func (s *Signer) Sign(ctx context.Context) (c Checkpoint, found bool, err error) {
	tree := NewTree(s.db)
	last, signedBefore, err := s.Newest(ctx)
	if err != nil {
		return c, false, err
	}
	size, err := tree.Size(ctx)
	if err != nil || size == 0 && !signedBefore {
		return c, false, err
	}
	if size < last.Size {
		return c, false, fmt.Errorf("%w: the tree has %d leaves, a checkpoint %d", ErrForked, size, last.Size)
	}
	root, err := s.vouch(ctx, tree, last, size)
	if err != nil || size == last.Size {
		return last, err == nil, err
	}
	c, err = s.sign(ctx, tree, size, root)
	if err != nil {
		return c, false, err
	}
	err = pgpool.Exec(ctx, s.db, "store a checkpoint", insertCheckpointSQL, c.Size, c.Note)
	return c, err == nil, err
}

func (s *Signer) sign(ctx context.Context, tree Tree, size int64, root tlog.Hash) (Checkpoint, error) {
	key, err := s.key(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	private, err := s.seal.Unseal(ctx, sealedFor, key.Name, key.Sealed)
	if err != nil {
		return Checkpoint{}, err
	}
	signer, err := note.NewSigner(string(private))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read the log's key: %w", err)
	}
	leaves, err := tree.leaves(ctx, size-1, size)
	if err != nil || len(leaves) == 0 {
		return Checkpoint{}, errors.Join(fmt.Errorf("the tree has no leaf %d", size-1), err)
	}
	c := Checkpoint{Origin: key.Name, Size: size, Root: root, Position: leaves[0].Position, Time: s.now()}
	signed, err := note.Sign(&note.Note{Text: c.text()}, signer)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("sign a checkpoint: %w", err)
	}
	c.Note = string(signed)
	return c, nil
}

const storedSQL = `
SELECT size, note
FROM audit.checkpoints
WHERE size > $1
ORDER BY size
LIMIT $2`

// storedPage bounds how many checkpoints are in memory at a time.
const storedPage = 500

type storedNote struct {
	Size int64
	Note string
}

// storedNotes gives the notes of trees with more than after leaves.
func storedNotes(ctx context.Context, db sqlx.QueryerContext, after int64) ([]storedNote, error) {
	return pgpool.List[storedNote](ctx, db, "the checkpoints", storedSQL, after, storedPage)
}
