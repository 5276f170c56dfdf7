package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"humanqa/domain"
	"humanqa/internal/pgpool"
)

// A subject is a job or a checker, by the name of its stream, and can be erased alone.
// Its texts are sealed with a key of its own (AES-256-GCM), which is wrapped by the master
// keyset and bound to the subject's name.
const (
	// textV1 starts a sealed text: base64url (no padding) of nonce and ciphertext.
	textV1 = "s1."
	// subjectKeySize is AES-256's, in bytes.
	subjectKeySize = 32
	// subjectsCached keys take about 6 MB. A page of the log has fewer subjects.
	subjectsCached = 4096
)

// subjectKey opens one subject's texts; a destroyed key has no aead.
type subjectKey struct {
	aead    cipher.AEAD
	nonces  []byte // the key of the hash that gives the nonces
	expires time.Time
}

// subjects finds the keys of subjects: in its cache, else in Postgres.
type subjects struct {
	db     *sqlx.DB
	master *master
	cache  *lru.Cache[string, subjectKey]

	mu      sync.Mutex
	wanted  []*newKey // waiting for the transaction that runs
	writing bool
}

// newKey is a key that is to be stored in the table. stored is closed once the table has
// this key or another process's, or once the write has failed with err.
type newKey struct {
	Subject   string `json:"subject"`
	AccountID string `json:"account_id"`
	Wrapped   string `json:"wrapped"` // base64
	stored    chan struct{}
	err       error
}

func newSubjects(db *sqlx.DB, m *master) *subjects {
	cache, _ := lru.New[string, subjectKey](subjectsCached) // the size is positive
	return &subjects{db: db, master: m, cache: cache}
}

// subjectContext keeps the wrapped keys of subjects apart from those of accounts.
func subjectContext(subject string) []byte { return []byte("subject\n" + subject) }

func (s *subjects) cached(subject string) (subjectKey, bool) {
	key, ok := s.cache.Get(subject)
	return key, ok && time.Now().Before(key.expires)
}

const selectSubjectKeys = `
	SELECT subject, wrapped
	FROM vault.subject_keys
	WHERE subject = ANY($1)`

// load brings the keys of subjects into the cache. A subject without a row is left out.
func (s *subjects) load(ctx context.Context, names []string) error {
	rows, err := pgpool.List[storedKey](ctx, s.db, "the keys of subjects", selectSubjectKeys, pq.Array(names))
	if err != nil {
		return err
	}
	return s.remember(rows)
}

// storedKey is a row of the table; a destroyed key is nil.
type storedKey struct {
	Subject string `db:"subject"`
	Wrapped []byte `db:"wrapped"`
}

func (s *subjects) remember(rows []storedKey) error {
	expires := time.Now().Add(cacheFor)
	for _, r := range rows {
		key := subjectKey{expires: expires}
		if r.Wrapped != nil {
			plain, err := s.master.Decrypt(r.Wrapped, subjectContext(r.Subject))
			if err == nil {
				err = key.open(plain)
			}
			if err != nil {
				return fmt.Errorf("open the key of %s: %w", r.Subject, err)
			}
		}
		s.cache.Add(r.Subject, key)
	}
	return nil
}

// open prepares an unwrapped key for use.
func (k *subjectKey) open(plain []byte) error {
	block, err := aes.NewCipher(plain)
	if err != nil {
		return err
	}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		return err
	}
	k.nonces, err = hkdf.Key(sha256.New, plain, nil, "humanqa nonces of texts", sha256.Size)
	return err
}

// seal gives the same bytes for the same text: an append that is sent again must not
// differ. So the nonce is a keyed hash of the text.
func (k *subjectKey) seal(subject string, plaintext []byte) []byte {
	mac := hmac.New(sha256.New, k.nonces)
	_, _ = mac.Write(plaintext) // a hash takes everything
	nonce := mac.Sum(nil)[:k.aead.NonceSize()]
	return k.aead.Seal(nonce, nonce, plaintext, []byte(subject))
}

func (k *subjectKey) unseal(subject string, sealed []byte) ([]byte, error) {
	size := k.aead.NonceSize()
	if len(sealed) < size {
		return nil, errors.New("it is too short")
	}
	return k.aead.Open(sealed[size:size], sealed[:size], sealed[size:], []byte(subject))
}

// get gives the subject's key; found is false if the table has none, not even a destroyed one.
func (s *subjects) get(ctx context.Context, subject string) (key subjectKey, found bool, err error) {
	if key, found = s.cached(subject); found {
		return key, true, nil
	}
	s.cache.Remove(subject)
	if err := s.load(ctx, []string{subject}); err != nil {
		return subjectKey{}, false, err
	}
	key, found = s.cached(subject)
	return key, found, nil
}

// getOrCreate commits a new key before it gives it. Of two processes that make the key at
// once one wins, and both use its key.
func (s *subjects) getOrCreate(ctx context.Context, subject, accountID string) (subjectKey, error) {
	key, found := s.cached(subject)
	for try := 0; !found && try < wrapTries; try++ {
		if try > 0 { // the master key is no longer current
			if err := s.master.follow(ctx); err != nil {
				return subjectKey{}, err
			}
		}
		err := s.create(ctx, subject, accountID)
		if err != nil {
			return subjectKey{}, fmt.Errorf("store the key of %s: %w", subject, err)
		}
		if key, found, err = s.get(ctx, subject); err != nil {
			return subjectKey{}, err
		}
	}
	if !found {
		return subjectKey{}, fmt.Errorf("the key of %s was stored, and is gone", subject)
	}
	return key, nil
}

// create stores a key if there is none, and brings the stored one into the cache.
// Subjects that arrive while a statement runs share the next one.
func (s *subjects) create(ctx context.Context, subject, accountID string) error {
	plain := make([]byte, subjectKeySize)
	_, _ = rand.Read(plain) // it never fails
	wrapped, err := s.master.Encrypt(plain, subjectContext(subject))
	if err != nil {
		return err
	}
	k := &newKey{
		Subject: subject, AccountID: accountID, Wrapped: base64.StdEncoding.EncodeToString(wrapped), stored: make(chan struct{}),
	}
	s.mu.Lock()
	s.wanted = append(s.wanted, k)
	if !s.writing {
		s.writing = true
		go s.writeWanted(context.WithoutCancel(ctx))
	}
	s.mu.Unlock()
	select {
	case <-k.stored:
		return k.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The rows are sorted: two processes that insert the same subjects wait for each other
// in one order. A key that another process commits meanwhile is not among the answers, and
// neither is one under a master key that is no longer current (see insertDataKey). Each
// subject is looked up by itself: a join would read the keys of all jobs.
const insertSubjectKeys = `
	WITH wanted AS MATERIALIZED (
		SELECT subject, account_id, decode(wrapped, 'base64') AS wrapped
		FROM json_to_recordset($1) AS r (subject text, account_id text, wrapped text)
	), current AS MATERIALIZED (
		SELECT substring(proof FROM 1 FOR 5) AS prefix
		FROM vault.master_proof
		FOR SHARE
	), stored AS (
		INSERT INTO vault.subject_keys (subject, account_id, wrapped)
		SELECT subject, account_id, wrapped
		FROM wanted
		WHERE substring(wrapped FROM 1 FOR 5) = (SELECT prefix FROM current)
		ON CONFLICT (subject) DO NOTHING
		RETURNING subject, wrapped
	)
	SELECT subject, wrapped FROM stored
	UNION ALL
	SELECT there.subject, there.wrapped
	FROM wanted
	CROSS JOIN LATERAL (
		SELECT k.subject, k.wrapped FROM vault.subject_keys k WHERE k.subject = wanted.subject OFFSET 0
	) AS there`

// writeTime bounds one statement with new keys.
const writeTime = 30 * time.Second

// writeWanted stores the wanted keys until none is left. A crash leaves at most a key that
// no text was sealed with.
func (s *subjects) writeWanted(ctx context.Context) {
	for {
		s.mu.Lock()
		batch := s.wanted
		s.wanted = nil
		s.writing = len(batch) > 0
		s.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		slices.SortStableFunc(batch, func(a, b *newKey) int { return strings.Compare(a.Subject, b.Subject) })
		bounded, cancel := context.WithTimeout(ctx, writeTime)
		rows, err := pgpool.List[storedKey](bounded, s.db, "the keys that were stored", insertSubjectKeys, pgpool.Rows(batch))
		if err == nil {
			_ = s.remember(rows) // get reports a key that does not open to its own subject
		}
		cancel()
		for _, k := range batch {
			k.err = err
			close(k.stored)
		}
	}
}

// SealText seals a text of the subject, which may be erased alone. The account is the one
// that the subject belongs to; empty: to the service. domain.ErrShredded says that the subject
// was erased.
func (v *Vault) SealText(ctx context.Context, subject, accountID string, plaintext []byte) (string, error) {
	key, err := v.subjects.getOrCreate(ctx, subject, accountID)
	if err != nil {
		return "", err
	}
	if key.aead == nil {
		return "", fmt.Errorf("seal a text of %s: %w", subject, domain.ErrShredded)
	}
	return textV1 + base64.RawURLEncoding.EncodeToString(key.seal(subject, plaintext)), nil
}

// OpenText opens a text that SealText sealed for the same subject. domain.ErrShredded says
// that the subject was erased, domain.ErrKeyLost that its key was lost otherwise.
func (v *Vault) OpenText(ctx context.Context, subject string, sealed []byte) ([]byte, error) {
	encoded, ok := strings.CutPrefix(string(sealed), textV1)
	if !ok {
		return nil, fmt.Errorf("open a text of %s: unknown format: %w", subject, domain.ErrUnsealable)
	}
	ciphertext, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("open a text of %s: %w: %w", subject, domain.ErrUnsealable, err)
	}
	switch key, found, err := v.subjects.get(ctx, subject); {
	case err != nil:
		return nil, err
	case !found:
		return nil, fmt.Errorf("open a text of %s: %w", subject, domain.ErrKeyLost)
	case key.aead == nil:
		return nil, fmt.Errorf("open a text of %s: %w", subject, domain.ErrShredded)
	default:
		plaintext, err := key.unseal(subject, ciphertext)
		if err != nil {
			return nil, fmt.Errorf("open a text of %s: %w: %w", subject, domain.ErrUnsealable, err)
		}
		return plaintext, nil
	}
}

// Expect brings the keys of subjects into memory with one query, before many of their
// texts are opened.
func (v *Vault) Expect(ctx context.Context, subjects []string) error {
	missing := slices.DeleteFunc(slices.Clone(subjects), func(name string) bool {
		_, known := v.subjects.cached(name)
		return known
	})
	if len(missing) == 0 {
		return nil
	}
	return v.subjects.load(ctx, missing)
}

const shredSubjectKey = `
	INSERT INTO vault.subject_keys (subject, account_id, destroyed_at)
	VALUES ($1, $2, now())
	ON CONFLICT (subject) DO UPDATE
	SET wrapped = NULL,
	    destroyed_at = COALESCE(subject_keys.destroyed_at, now())`

// ShredSubject destroys the subject's key, for good: its texts never open again, and none
// is sealed any more. A repeat does nothing.
func (v *Vault) ShredSubject(ctx context.Context, subject, accountID string) error {
	if err := pgpool.Exec(ctx, v.subjects.db, "destroy the key of "+subject, shredSubjectKey, subject, accountID); err != nil {
		return err
	}
	v.subjects.cache.Remove(subject)
	return nil
}

const subjectsWithKeysSQL = `
	SELECT subject
	FROM vault.subject_keys
	WHERE subject = ANY($1)
	  AND destroyed_at IS NULL
	ORDER BY subject`

// SubjectsWithKeys gives those of the subjects that have a key which was not destroyed.
func (v *Vault) SubjectsWithKeys(ctx context.Context, subjects []string) ([]string, error) {
	return pgpool.List[string](ctx, v.subjects.db, "the keys of subjects", subjectsWithKeysSQL, pq.Array(subjects))
}
