package vault

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"humanqa/domain"
)

// lookAgain is the least time from a look at the keyset's source in vain to the next one: a
// forged event may name a key that no keyset has.
const lookAgain = time.Second

// master wraps and unwraps data keys by the newest keyset that this process has read. It
// reads it again where a key is wrapped under one that it lacks: another process has begun to
// use a new key. It implements tink.AEAD.
type master struct {
	cfg  Config
	now  atomic.Pointer[Keyset]
	mu   sync.Mutex // one look at the source at a time
	last time.Time  // of a look in vain
}

// openMaster reads the keyset, and compares it with the database. Only for a database without
// a proof it makes a missing file: with data keys in the database a fresh keyset could open
// none of them.
func openMaster(ctx context.Context, cfg Config) (*master, error) {
	// The proof is read before the file: a process that left a proof had its file by
	// then. So a proof without a file means a lost file, and not another process at its
	// first start.
	proof, err := readProof(ctx, cfg.DB)
	if err != nil {
		return nil, err
	}
	read, err := ReadKeyset(ctx, cfg)
	if errors.Is(err, ErrNoKeyset) {
		if proof != nil {
			return nil, fmt.Errorf("%w, but the database holds keys made with it: "+
				"put it back, or name it by HUMANQA_MASTER_KEY_FILE (docs/keys.md)", err)
		}
		if err := createFile(cfg.KeyFile); err != nil {
			return nil, fmt.Errorf("create master key file %s: %w", cfg.KeyFile, err)
		}
		read, err = ReadKeyset(ctx, cfg)
	}
	if err != nil {
		return nil, err
	}
	if proof == nil {
		if err := read.prove(ctx, cfg.DB, insertProof); err != nil {
			return nil, err
		}
	}
	if _, err := read.Fits(ctx, cfg.DB); err != nil {
		return nil, err
	}
	m := &master{cfg: cfg}
	m.now.Store(read)
	return m, m.follow(ctx)
}

// having gives a keyset that has the needed key, else the one in memory.
func (m *master) having(needed func(*Keyset) bool) (_ *Keyset, found bool) {
	if k := m.now.Load(); needed(k) {
		return k, true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.now.Load()
	if needed(k) || time.Since(m.last) < lookAgain {
		return k, needed(k)
	}
	read, err := ReadKeyset(context.Background(), m.cfg)
	if err == nil && read.opens(k.current) { // else it is newer by a whole rotation
		read, err = read.under(k.current)
	}
	if err != nil || !needed(read) {
		m.last = time.Now()
	}
	if err != nil || proto.Equal(read.keys, k.keys) || !read.continues(k) {
		return k, false
	}
	before := *k
	before.before = nil
	read.before = &before
	m.now.Store(read)
	return read, needed(read)
}

// follow makes the database's current key this process's.
func (m *master) follow(ctx context.Context) error {
	for tried := uint32(0); ; {
		proof, err := readProof(ctx, m.cfg.DB)
		if err != nil {
			return err
		}
		id, _ := keyOf(proof)
		k, found := m.having(func(k *Keyset) bool { return k.opens(id) })
		switch {
		case found:
			return m.use(id)
		case id == tried:
			return k.lacks(id)
		}
		tried = id // the next rotation may have ended meanwhile
	}
}

// use makes a key of the keyset in memory the current one.
func (m *master) use(id uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.now.Load()
	if k.current == id {
		return nil
	}
	next, err := k.under(id)
	if err == nil {
		m.now.Store(next)
	}
	return err
}

// lacks is the refusal of a process with a keyset that is too old. Nothing is lost by it.
func (k *Keyset) lacks(id uint32) error {
	return domain.Unavailable(fmt.Errorf("%s lacks the key %s, which another process has begun to use: give this one the newest keyset (docs/keys.md)",
		k.from, hexID(id)))
}

// Encrypt implements tink.AEAD.
func (m *master) Encrypt(plaintext, associatedData []byte) ([]byte, error) {
	return m.now.Load().aead.Encrypt(plaintext, associatedData)
}

// Decrypt implements tink.AEAD.
func (m *master) Decrypt(ciphertext, associatedData []byte) ([]byte, error) {
	id, named := keyOf(ciphertext)
	k, found := m.having(func(k *Keyset) bool { return !named || k.opens(id) })
	if !found && k.before != nil && k.before.opens(id) { // the row was read before a rotation ended
		k, found = k.before, true
	}
	if !found {
		return nil, k.lacks(id)
	}
	return k.aead.Decrypt(ciphertext, associatedData)
}
