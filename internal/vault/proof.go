package vault

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

// proofText is the plaintext of a master keyset's proof. The proof keeps two nodes
// that were started with different keysets from filling one database with data
// keys that only one of them can open. The key that made it is the current one: no data key
// is stored under another.
var proofText, proofContext = []byte("humanqa"), []byte("master proof")

func (k *Keyset) proves(proof []byte) bool {
	text, err := k.aead.Decrypt(proof, proofContext)
	return err == nil && string(text) == string(proofText)
}

const selectProof = `
	SELECT proof
	FROM vault.master_proof`

// readProof gives nil before the first start.
func readProof(ctx context.Context, q sqlx.QueryerContext) ([]byte, error) {
	proof, _, err := pgpool.Find[[]byte](ctx, q, "the master keyset's proof", selectProof)
	return proof, err
}

const insertProof = `
	INSERT INTO vault.master_proof (proof)
	VALUES ($1)
	ON CONFLICT DO NOTHING`

const insertMasterKey = `
	INSERT INTO vault.master_keys (key_id, wraps)
	SELECT substring(proof FROM 2 FOR 4), true
	FROM vault.master_proof
	ON CONFLICT (key_id) DO UPDATE
	SET wraps = true`

// prove stores a proof under the keyset's current key, and that data keys may be wrapped under
// the key of the proof that is there then: another process may have been first at its start,
// with the same keyset or another one.
func (k *Keyset) prove(ctx context.Context, db *sqlx.DB, store string) error {
	proof, err := k.aead.Encrypt(proofText, proofContext)
	if err == nil {
		err = pgpool.InTx(ctx, db, func(tx *sqlx.Tx) error {
			if _, err := tx.ExecContext(ctx, store, proof); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, insertMasterKey)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("store the proof of the master key %s: %w", hexID(k.current), err)
	}
	return nil
}
