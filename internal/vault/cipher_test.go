package vault

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	gcmpb "github.com/tink-crypto/tink-go/v2/proto/aes_gcm_go_proto"
	tinkpb "github.com/tink-crypto/tink-go/v2/proto/tink_go_proto"
	"google.golang.org/protobuf/proto"

	"humanqa/internal/pgtest"
)

// Specification, "POST /v1/jobs", credentials: "stored encrypted at rest with
// AES-256-GCM". What was sealed opens by the standard library's cipher under a
// key of 32 bytes.
func TestTheCipherIsAES256GCM(t *testing.T) {
	t.Parallel()
	db, file := pgtest.New(t), filepath.Join(t.TempDir(), "master.json")
	v, err := Open(t.Context(), Config{KeyFile: file, DB: db})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := v.Seal(t.Context(), "acc", "job-1", []byte("hunter2"))
	if err != nil {
		t.Fatal(err)
	}

	m, err := openMaster(file, false)
	if err != nil {
		t.Fatal(err)
	}
	var r row
	if err := db.GetContext(t.Context(), &r, selectDataKey, "acc"); err != nil {
		t.Fatal(err)
	}
	handle, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(r.Wrapped)), m.aead, dataContext("acc"))
	if err != nil {
		t.Fatal(err)
	}
	var plainKeys bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewBinaryWriter(&plainKeys)); err != nil {
		t.Fatal(err)
	}
	var keys tinkpb.Keyset
	if err := proto.Unmarshal(plainKeys.Bytes(), &keys); err != nil {
		t.Fatal(err)
	}
	var key gcmpb.AesGcmKey
	if err := proto.Unmarshal(keys.GetKey()[0].GetKeyData().GetValue(), &key); err != nil {
		t.Fatal(err)
	}
	if n := len(key.GetKeyValue()); n != 32 {
		t.Fatalf("the key has %d bytes", n)
	}
	block, err := aes.NewCipher(key.GetKeyValue())
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(sealed, sealedV1))
	if err != nil {
		t.Fatal(err)
	}
	const prefix = 5 // the key's name
	nonce := raw[prefix : prefix+gcm.NonceSize()]
	plain, err := gcm.Open(nil, nonce, raw[prefix+gcm.NonceSize():], []byte("job-1"))
	if err != nil || string(plain) != "hunter2" {
		t.Errorf("it opens to %q, %v", plain, err)
	}
}
