package vault

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"google.golang.org/protobuf/proto"

	"humanqa/internal/pgpool"
)

// Rotation is how the master key is to be changed.
type Rotation struct {
	// Finish takes old keys out, once no data key is wrapped under them.
	Finish bool
	// Apart stops behind the addition of a key: other processes have copies of the keyset, and
	// need the new one first.
	Apart bool
	// Store is a program that keeps the keyset which it gets on its standard input. Empty: the
	// keyset's file is replaced.
	Store string
}

// Rotated says how far a rotation is. Each step may be repeated, and the next call goes on.
type Rotated struct {
	Step      Step   `json:"step"`
	KeyID     string `json:"keyId"`     // of the new key, as MACs have it
	Rewrapped int    `json:"rewrapped"` // data keys, by this call
}

// Step is the end of a call of Rotate.
type Step string

// The steps of a rotation, in their order.
const (
	KeyAdded      Step = "added"     // the keyset has a new key, and nothing is under it
	KeysRewrapped Step = "rewrapped" // all data keys are under the new key
	OldKeysOut    Step = "finished"  // the old key only verifies MACs
)

// Rotate changes the master key while any number of processes use the vault:
//
//  1. The keyset gets a new key.
//  2. The proof in the database is made under the new key, in one transaction. From then on no
//     data key is stored under another. A process that tries to is refused, reads the keyset
//     again and goes on under the new key. So does one that reads a data key under it.
//  3. Data keys are wrapped anew, in batches.
//  4. With Finish, the database says that the old key wraps nothing. Then the keyset drops
//     it, except for its MAC key, under which the log holds events.
//
// After a crash between any two writes the keyset has at least the keys that the database
// needs, and the same call goes on.
func (v *Vault) Rotate(ctx context.Context, r Rotation) (out Rotated, err error) {
	err = pgpool.InTx(ctx, v.keys.db, func(tx *sqlx.Tx) error { // its end is the lock's
		alone, err := pgpool.One[bool](ctx, tx, "the lock of rotations", lockRotation)
		if err != nil {
			return err
		}
		if !alone {
			return errors.New("another process rotates the master key: wait for its end")
		}
		k, used, err := v.reread(ctx)
		if err != nil {
			return err
		}
		if r.Finish {
			out, err = v.finish(ctx, r, k, used)
			return err
		}
		if !slices.ContainsFunc(used, func(one masterKey) bool { return one.Wraps && one.id() != k.current }) {
			id, added, err := v.unusedKey(ctx, r, k, used)
			if err != nil {
				return err
			}
			if out = (Rotated{Step: KeyAdded, KeyID: hexID(id)}); added && r.Apart {
				return nil
			}
			if err := v.promote(ctx, id); err != nil {
				return err
			}
		}
		out.Step, out.KeyID = KeysRewrapped, hexID(v.master.now.Load().current)
		for _, t := range wrappings {
			if err := v.rewrap(ctx, t, &out.Rewrapped); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

const lockRotation = `
	SELECT pg_try_advisory_xact_lock(hashtext('humanqa.master.keys'))`

// reread reads the keyset and the database anew: another rotation may have ended just now.
func (v *Vault) reread(ctx context.Context) (*Keyset, []masterKey, error) {
	k, err := ReadKeyset(ctx, v.master.cfg)
	if err == nil {
		_, err = k.Fits(ctx, v.keys.db)
	}
	if err != nil {
		return nil, nil, err
	}
	v.master.now.Store(k)
	if err := v.master.follow(ctx); err != nil {
		return nil, nil, err
	}
	used, err := pgpool.List[masterKey](ctx, v.keys.db, "the ids of master keys", selectMasterKeys)
	return v.master.now.Load(), used, err
}

// unusedKey gives the last key of the keyset that was never used. If there is none, it adds one.
func (v *Vault) unusedKey(ctx context.Context, r Rotation, k *Keyset, used []masterKey) (id uint32, added bool, err error) {
	for _, one := range slices.Backward(k.keys.GetKey()) {
		if enabled(one) && !slices.ContainsFunc(used, func(u masterKey) bool { return u.id() == one.GetKeyId() }) {
			return one.GetKeyId(), false, nil
		}
	}
	next, id, err := k.withFresh()
	if err != nil {
		return 0, false, err
	}
	return id, true, v.store(ctx, r, next)
}

// store keeps another keyset, and reads it back before anything depends on it.
func (v *Vault) store(ctx context.Context, r Rotation, next *Keyset) error {
	cfg := v.master.cfg
	switch {
	case r.Store != "":
		if _, err := runCommand(ctx, r.Store, next.Text); err != nil {
			return fmt.Errorf("--store %w", err)
		}
	case cfg.KeyCommand != "":
		return errors.New("HUMANQA_MASTER_KEY_COMMAND gives the keyset: name by --store a program that keeps another one, from its standard input")
	default:
		if err := replaceFile(cfg.KeyFile, next.Text); err != nil {
			return fmt.Errorf("replace %s: %w", next.from, err)
		}
	}
	got, err := ReadKeyset(ctx, cfg)
	if err == nil && !proto.Equal(got.keys, next.keys) {
		err = fmt.Errorf("%s does not give the keyset that was stored: nothing depends on it yet; run the command again once it does", got.from)
	}
	if err == nil {
		got, err = got.under(v.master.now.Load().current)
	}
	if err == nil {
		v.master.now.Store(got)
	}
	return err
}

const updateProof = `
	UPDATE vault.master_proof
	SET proof = $1`

// promote makes a key of the keyset the current one.
func (v *Vault) promote(ctx context.Context, id uint32) error {
	next, err := v.master.now.Load().under(id)
	if err != nil {
		return err
	}
	if err := next.prove(ctx, v.keys.db, updateProof); err != nil {
		return err
	}
	v.master.now.Store(next)
	return nil
}

// rewrapBatch data keys take some milliseconds, and no command waits for them longer.
const rewrapBatch = 500

// wrapping is a table of wrapped keys, and how one of them is wrapped anew.
type wrapping struct {
	selectSQL, updateSQL string
	anew                 func(*master, row) (row, error)
}

// A key that was destroyed meanwhile stays so.
var wrappings = []wrapping{{`
	SELECT account_id, wrapped, fingerprint
	FROM vault.data_keys
	WHERE account_id > $1
	  AND wrapped IS NOT NULL
	  AND (substring(wrapped FROM 4 FOR 5) <> $2 OR substring(fingerprint FROM 4 FOR 5) <> $2)
	ORDER BY account_id
	LIMIT $3`, `
	UPDATE vault.data_keys k
	SET wrapped = decode(r.wrapped, 'base64'),
	    fingerprint = decode(r.fingerprint, 'base64')
	FROM json_to_recordset($1) AS r (name text, wrapped text, fingerprint text)
	WHERE k.account_id = r.name
	  AND k.wrapped IS NOT NULL`,
	func(m *master, r row) (row, error) {
		data, fingerprint, err := r.keysets(m)
		if err != nil {
			return row{}, err
		}
		anew, err := wrap(m, r.AccountID, data, fingerprint)
		if err != nil {
			return row{}, err
		}
		return *anew, nil
	},
}, {`
	SELECT subject AS account_id, wrapped
	FROM vault.subject_keys
	WHERE subject > $1
	  AND wrapped IS NOT NULL
	  AND substring(wrapped FROM 1 FOR 5) <> $2
	ORDER BY subject
	LIMIT $3`, `
	UPDATE vault.subject_keys k
	SET wrapped = decode(r.wrapped, 'base64')
	FROM json_to_recordset($1) AS r (name text, wrapped text)
	WHERE k.subject = r.name
	  AND k.wrapped IS NOT NULL`,
	func(m *master, r row) (row, error) {
		plain, err := m.Decrypt(r.Wrapped, subjectContext(r.AccountID))
		if err != nil {
			return row{}, fmt.Errorf("open the key of %s: %w", r.AccountID, err)
		}
		r.Wrapped, err = m.Encrypt(plain, subjectContext(r.AccountID))
		return r, err
	},
}}

// rewrap brings the keys of a table under the current master key, and counts them.
func (v *Vault) rewrap(ctx context.Context, t wrapping, done *int) error {
	current := prefixOf(v.master.now.Load().current)
	for after := ""; ; {
		rows, err := pgpool.List[row](ctx, v.keys.db, "wrapped keys", t.selectSQL, after, current, rewrapBatch)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i, r := range rows {
			if rows[i], err = t.anew(v.master, r); err != nil {
				return err
			}
		}
		n, err := pgpool.ExecCount(ctx, v.keys.db, "wrap keys anew", t.updateSQL, pgpool.Rows(rows))
		if err != nil {
			return err
		}
		*done += n
		after = rows[len(rows)-1].AccountID
	}
}

const countUnderOthers = `
	SELECT (
		SELECT count(*)
		FROM vault.data_keys
		WHERE wrapped IS NOT NULL
		  AND (substring(wrapped FROM 4 FOR 5) <> $1 OR substring(fingerprint FROM 4 FOR 5) <> $1)
	) + (
		SELECT count(*)
		FROM vault.subject_keys
		WHERE wrapped IS NOT NULL
		  AND substring(wrapped FROM 1 FOR 5) <> $1
	)`

const onlyVerify = `
	UPDATE vault.master_keys
	SET wraps = false
	WHERE key_id <> $1`

// finish takes out all used keys but the current one. The database says so first: a keyset
// with more keys than it needs is whole.
func (v *Vault) finish(ctx context.Context, r Rotation, k *Keyset, used []masterKey) (Rotated, error) {
	current := prefixOf(k.current)
	left, err := pgpool.One[int](ctx, v.keys.db, "the keys under old master keys", countUnderOthers, current)
	if err == nil && left > 0 {
		err = fmt.Errorf("%d data keys are wrapped under an old master key: run humanqa keys rotate first", left)
	}
	if err != nil {
		return Rotated{}, err
	}
	if err := pgpool.Exec(ctx, v.keys.db, "end the use of old master keys", onlyVerify, current[1:]); err != nil {
		return Rotated{}, err
	}
	var old []uint32
	for _, one := range used {
		if one.id() != k.current {
			old = append(old, one.id())
		}
	}
	next, err := k.without(old)
	if err == nil && !proto.Equal(next.keys, k.keys) {
		err = v.store(ctx, r, next)
	}
	return Rotated{Step: OldKeysOut, KeyID: hexID(k.current)}, err
}
