package vault

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	commonpb "github.com/tink-crypto/tink-go/v2/proto/common_go_proto"
	hmacpb "github.com/tink-crypto/tink-go/v2/proto/hmac_go_proto"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"github.com/tink-crypto/tink-go/v2/tink"
	"google.golang.org/protobuf/proto"

	"humanqa/internal/pgpool"
)

// Keyset is a master keyset: a tink keyset as JSON, in cleartext. Its loss is the loss of every
// sealed secret: back it up apart from the database. A disabled HMAC key in it is the rest of a
// master key that was taken out: it verifies MACs under the old key's id, and opens nothing.
//
// The database says which of its keys is current, and wraps data keys and makes MACs. So all
// processes change to another one at the same moment, whenever they read their keysets.
type Keyset struct {
	Text []byte // as it is stored

	from    string // its place, for errors
	keys    *tinkpb.Keyset
	macs    map[uint32][]byte // of each key, by its id
	aead    tink.AEAD         // opens under every key that is not disabled, and wraps under current
	current uint32
	before  *Keyset // in whose place this process read it; nil: none
}

// parseKeyset reads a keyset; from names its place. No error quotes the text.
func parseKeyset(text []byte, from string) (*Keyset, error) {
	keys, err := keyset.NewJSONReader(bytes.NewReader(text)).Read()
	if err != nil || len(keys.GetKey()) == 0 {
		return nil, fmt.Errorf("%s holds no tink keyset: restore it from its backup", from)
	}
	k := &Keyset{Text: text, from: from, keys: keys, macs: make(map[uint32][]byte, len(keys.GetKey()))}
	for _, one := range keys.GetKey() {
		if k.macs[one.GetKeyId()], err = macOf(one.GetKeyData()); err != nil {
			return nil, fmt.Errorf("%s: derive the key of events' MACs: %w", from, err)
		}
	}
	return k.under(keys.GetPrimaryKeyId())
}

// newKeyset makes a keyset of one key.
func newKeyset() (*Keyset, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("generate a key: %w", err)
	}
	return encode(insecurecleartextkeyset.KeysetMaterial(handle), "the new keyset")
}

func encode(keys *tinkpb.Keyset, from string) (*Keyset, error) {
	var text bytes.Buffer
	if err := keyset.NewJSONWriter(&text).Write(keys); err != nil {
		return nil, fmt.Errorf("encode the keyset: %w", err)
	}
	return parseKeyset(text.Bytes(), from)
}

// under gives the same keys, of which the named one is current.
func (k *Keyset) under(id uint32) (*Keyset, error) {
	keys := proto.CloneOf(k.keys)
	keys.PrimaryKeyId = id
	next := &Keyset{Text: k.Text, from: k.from, keys: k.keys, macs: k.macs, current: id, before: k.before}
	var plain bytes.Buffer
	err := keyset.NewBinaryWriter(&plain).Write(keys)
	if err == nil {
		var handle *keyset.Handle
		if handle, err = insecurecleartextkeyset.Read(keyset.NewBinaryReader(&plain)); err == nil {
			next.aead, err = aead.New(handle)
		}
	}
	if err != nil { // it may quote the keyset
		return nil, fmt.Errorf("%s holds no encryption keyset: restore it from its backup", k.from)
	}
	return next, nil
}

// onlyMAC is the type of a key that only verifies MACs.
const onlyMAC = "type.googleapis.com/google.crypto.tink.HmacKey"

// macOf derives a MAC key from a key: of the bytes as they stand in the keyset, which every
// library reads alike.
func macOf(data *tinkpb.KeyData) ([]byte, error) {
	if data.GetTypeUrl() == onlyMAC {
		var old hmacpb.HmacKey
		err := proto.Unmarshal(data.GetValue(), &old)
		return old.GetKeyValue(), err
	}
	return hkdf.Key(sha256.New, data.GetValue(), nil, "humanqa event mac", sha256.Size)
}

// opens says that data keys wrapped under the key with that id open.
func (k *Keyset) opens(id uint32) bool {
	return slices.ContainsFunc(k.keys.GetKey(), func(one *tinkpb.Keyset_Key) bool { return one.GetKeyId() == id && enabled(one) })
}

func enabled(one *tinkpb.Keyset_Key) bool { return one.GetStatus() == tinkpb.KeyStatusType_ENABLED }

// withFresh gives the keyset with one more key behind the others, and its id.
func (k *Keyset) withFresh() (next *Keyset, id uint32, err error) {
	fresh, err := newKeyset()
	if err != nil {
		return nil, 0, err
	}
	if k.macs[fresh.current] != nil { // ids are random
		return k.withFresh()
	}
	keys := proto.CloneOf(k.keys)
	keys.Key = append(keys.Key, fresh.keys.GetKey()...)
	next, err = encode(keys, k.from)
	return next, fresh.current, err
}

// without gives the keyset with the current key as its primary one. Keys with the ids of old
// only verify MACs from then on.
func (k *Keyset) without(old []uint32) (*Keyset, error) {
	keys := proto.CloneOf(k.keys)
	keys.PrimaryKeyId = k.current
	for _, one := range keys.GetKey() {
		if !slices.Contains(old, one.GetKeyId()) || !enabled(one) {
			continue
		}
		value, err := proto.Marshal(&hmacpb.HmacKey{
			Params:   &hmacpb.HmacParams{Hash: commonpb.HashType_SHA256, TagSize: macTag},
			KeyValue: k.macs[one.GetKeyId()],
		})
		if err != nil {
			return nil, fmt.Errorf("keep the MAC key of %s: %w", hexID(one.GetKeyId()), err)
		}
		one.Status = tinkpb.KeyStatusType_DISABLED
		one.KeyData = &tinkpb.KeyData{TypeUrl: onlyMAC, Value: value, KeyMaterialType: tinkpb.KeyData_SYMMETRIC}
	}
	return encode(keys, k.from)
}

// macTag is how many bytes an event's MAC has (eventstore/mac).
const macTag = 16

// continues says that the keyset has every key of an earlier one. An older one would close
// texts that open now.
func (k *Keyset) continues(earlier *Keyset) bool {
	for id := range earlier.macs {
		if k.macs[id] == nil {
			return false
		}
	}
	return true
}

// hexID is a key's id as events' MACs have it.
func hexID(id uint32) string { return fmt.Sprintf("%08x", id) }

// prefixLength is how many bytes of a ciphertext name its key: tink writes a version (1) and
// the key's id, big endian.
const prefixLength = 5

// keyOf is the id of the key that made a ciphertext.
func keyOf(ciphertext []byte) (id uint32, found bool) {
	if len(ciphertext) < prefixLength || ciphertext[0] != 1 {
		return 0, false
	}
	return binary.BigEndian.Uint32(ciphertext[1:prefixLength]), true
}

// prefixOf is how a ciphertext of the key begins.
func prefixOf(id uint32) []byte { return binary.BigEndian.AppendUint32([]byte{1}, id) }

const hasMasterKeys = `
	SELECT to_regclass('vault.master_keys') IS NOT NULL`

const selectMasterKeys = `
	SELECT key_id, wraps
	FROM vault.master_keys`

// masterKey is a key that this database or its log relies on.
type masterKey struct {
	KeyID []byte `db:"key_id"` // big endian
	Wraps bool   `db:"wraps"`  // data keys may be wrapped under it; else it only verifies MACs
}

func (m masterKey) id() uint32 { return binary.BigEndian.Uint32(m.KeyID) }

// Fits compares the keyset with the keys that a database and its log rely on, also in a
// database of an older version. It says under how many master keys data keys may be wrapped:
// during a rotation there are two.
func (k *Keyset) Fits(ctx context.Context, q sqlx.QueryerContext) (wrapping int, err error) {
	proof, err := readProof(ctx, q)
	if err != nil || proof == nil {
		return 0, err
	}
	known, err := pgpool.One[bool](ctx, q, "the ids of master keys", hasMasterKeys)
	if err != nil {
		return 0, err
	}
	var needed []masterKey
	if known {
		if needed, err = pgpool.List[masterKey](ctx, q, "the ids of master keys", selectMasterKeys); err != nil {
			return 0, err
		}
	}
	for _, n := range needed {
		if n.Wraps {
			wrapping++
		}
	}
	return wrapping, k.fits(proof, needed)
}

// HasKeys says whether a database holds keys that a keyset has wrapped.
func HasKeys(ctx context.Context, q sqlx.QueryerContext) (bool, error) {
	proof, err := readProof(ctx, q)
	return proof != nil, err
}

func (k *Keyset) fits(proof []byte, needed []masterKey) error {
	var wrapping, proving []string
	strange := true
	for _, n := range needed {
		switch id := n.id(); {
		case n.Wraps && !k.opens(id):
			wrapping = append(wrapping, hexID(id))
		case k.macs[id] == nil:
			proving = append(proving, hexID(id))
		default:
			strange = false
		}
	}
	const next = "put the newest keyset back, or name it by HUMANQA_MASTER_KEY_FILE (docs/keys.md)"
	switch {
	case (strange || len(wrapping)+len(proving) == 0) && !k.proves(proof):
		return fmt.Errorf("%s is not the one this database's keys were made with: %s", k.from, next)
	case len(wrapping) > 0:
		return fmt.Errorf("%s lacks the key %s, which this database's keys are wrapped under: %s", k.from, strings.Join(wrapping, ", "), next)
	case len(proving) > 0:
		return fmt.Errorf("%s lacks the key %s, which proves events of the log: %s", k.from, strings.Join(proving, ", "), next)
	}
	return nil
}
