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

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
)

// Specification, "POST /v1/jobs", credentials: "stored encrypted at rest with
// AES-256-GCM". What was sealed opens by the standard library's cipher under a
// key of 32 bytes.
func TestTheCipherIsAES256GCM(t *testing.T) {
	t.Parallel()
	db, file := pgtest.New(t), filepath.Join(t.TempDir(), "master.json")
	v, err := Open(t.Context(), Config{KeyFile: file, DB: db})
	must.NoError(t, err)
	sealed, err := v.Seal(t.Context(), "acc", "job-1", []byte("hunter2"))
	must.NoError(t, err)

	m, err := openMaster(t.Context(), Config{KeyFile: file, DB: db})
	must.NoError(t, err)
	var r row
	must.NoError(t, db.GetContext(t.Context(), &r, selectDataKey, "acc"))
	handle, err := keyset.ReadWithAssociatedData(keyset.NewBinaryReader(bytes.NewReader(r.Wrapped)), m, dataContext("acc"))
	must.NoError(t, err)
	var plainKeys bytes.Buffer
	must.NoError(t, insecurecleartextkeyset.Write(handle, keyset.NewBinaryWriter(&plainKeys)))
	var keys tinkpb.Keyset
	must.NoError(t, proto.Unmarshal(plainKeys.Bytes(), &keys))
	var key gcmpb.AesGcmKey
	must.NoError(t, proto.Unmarshal(keys.GetKey()[0].GetKeyData().GetValue(), &key))
	if n := len(key.GetKeyValue()); n != 32 {
		t.Fatalf("the key has %d bytes", n)
	}
	block, err := aes.NewCipher(key.GetKeyValue())
	must.NoError(t, err)
	gcm, err := cipher.NewGCM(block)
	must.NoError(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(sealed, sealedV1))
	must.NoError(t, err)
	const prefix = 5 // the key's name
	nonce := raw[prefix : prefix+gcm.NonceSize()]
	plain, err := gcm.Open(nil, nonce, raw[prefix+gcm.NonceSize():], []byte("job-1"))
	if err != nil || string(plain) != "hunter2" {
		t.Errorf("it opens to %q, %v", plain, err)
	}
}
