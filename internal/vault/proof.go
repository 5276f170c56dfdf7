package vault

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"

	"humanqa/internal/pgpool"
)

// proofText is the plaintext of a master keyset's proof. The proof keeps two nodes
// that were started with different key files from filling one database with data
// keys that only one of them can open.
var proofText, proofContext = []byte("humanqa"), []byte("master proof")

func (m *master) proves(proof []byte) bool {
	text, err := m.aead.Decrypt(proof, proofContext)
	return err == nil && string(text) == string(proofText)
}

const selectProof = `
	SELECT proof
	FROM vault.master_proof`

// readProof gives nil before the first start.
func readProof(ctx context.Context, db *sqlx.DB) ([]byte, error) {
	proof, _, err := pgpool.Find[[]byte](ctx, db, "the master keyset's proof", selectProof)
	return proof, err
}

const insertProof = `
	INSERT INTO vault.master_proof (proof)
	VALUES ($1)
	ON CONFLICT DO NOTHING`

// leaveProof stores a proof if there is none, and gives the stored one: another process
// may have been first, with the same keyset or another one.
func leaveProof(ctx context.Context, db *sqlx.DB, m *master) ([]byte, error) {
	proof, err := m.aead.Encrypt(proofText, proofContext)
	if err != nil {
		return nil, fmt.Errorf("prove the master keyset: %w", err)
	}
	err = pgpool.InTxDurable(ctx, db, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, insertProof, proof)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("store the master keyset's proof: %w", err)
	}
	return readProof(ctx, db)
}
