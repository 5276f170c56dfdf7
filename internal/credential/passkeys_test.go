package credential_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-webauthn/webauthn/protocol"

	"humanqa/domain"
	"humanqa/internal/credential"
	"humanqa/internal/testing/must"
)

// newPasskey answers the challenge as an authenticator does that calls its key id
// (Web Authentication, "Registering a New Credential"; its objects are CBOR).
func newPasskey(t *testing.T, asked credential.Challenge, id []byte) []byte {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	return newPasskeyOf(t, asked, id, pair)
}

func newPasskeyOf(t *testing.T, asked credential.Challenge, id []byte, pair *ecdsa.PrivateKey) []byte {
	t.Helper()
	options, ok := asked.Options.(protocol.PublicKeyCredentialCreationOptions)
	if !ok {
		t.Fatalf("the options are %T", asked.Options)
	}
	client, err := json.Marshal(map[string]string{
		"type": "webauthn.create", "challenge": options.Challenge.String(), "origin": "http://localhost:8080",
	})
	must.NoError(t, err)
	point, err := pair.PublicKey.Bytes()
	must.NoError(t, err)

	var data bytes.Buffer
	party := sha256.Sum256([]byte("localhost"))
	data.Write(party[:])
	data.WriteByte(0x45)           // present, verified, a credential follows
	data.Write(make([]byte, 4+16)) // the counter, and the authenticator's kind
	must.NoError(t, binary.Write(&data, binary.BigEndian, uint16(len(id))))
	data.Write(id)
	data.Write([]byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20}) // {1: EC2, 3: ES256, -1: P-256, -2: x
	data.Write(point[1:33])
	data.Write([]byte{0x22, 0x58, 0x20}) // , -3: y}
	data.Write(point[33:])

	attestation := []byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58") // {"fmt": "none", "attStmt": {}, "authData":
	attestation = append(append(attestation, byte(data.Len())), data.Bytes()...)
	encode := base64.RawURLEncoding.EncodeToString
	answer, err := json.Marshal(map[string]any{
		"id": encode(id), "rawId": encode(id), "type": "public-key",
		"response": map[string]string{"clientDataJSON": encode(client), "attestationObject": encode(attestation)},
	})
	must.NoError(t, err)
	return answer
}

// An authenticator may call its key what it likes, another person's key included.
func TestAPasskeysIDThatIsTakenIsAConflict(t *testing.T) {
	t.Parallel()
	w := setup(t)
	join := func(link string, id []byte) (string, error) {
		asked, err := w.AskToJoin(t.Context(), link, "Ann")
		must.NoError(t, err)
		return w.JoinWithPasskey(t.Context(), link, asked.Token, newPasskey(t, asked, id))
	}
	first, second := bytes.Repeat([]byte{1}, 16), bytes.Repeat([]byte{2}, 16)
	if id, err := join(w.link("p1"), first); err != nil || id != "p1" {
		t.Fatalf("%q, %v", id, err)
	}
	link := w.link("p2")
	if id, err := join(link, first); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("an id that is taken: %q, %v", id, err)
	}
	if id, err := join(link, second); err != nil || id != "p2" {
		t.Errorf("another one, by the link that is still open: %q, %v", id, err)
	}
	var owner string
	must.NoError(t, w.db.Get(&owner, `SELECT person_id FROM signin.passkeys WHERE credential_id = $1`, first))
	if owner != "p1" {
		t.Errorf("the first key is %s's", owner)
	}
}

// signed answers a challenge as the authenticator of a key does.
func signed(t *testing.T, asked credential.Challenge, id []byte, pair *ecdsa.PrivateKey, person string, flags byte, counter uint32) []byte {
	t.Helper()
	options, ok := asked.Options.(protocol.PublicKeyCredentialRequestOptions)
	if !ok {
		t.Fatalf("the options are %T", asked.Options)
	}
	client, err := json.Marshal(map[string]string{
		"type": "webauthn.get", "challenge": options.Challenge.String(), "origin": "http://localhost:8080",
	})
	must.NoError(t, err)
	party := sha256.Sum256([]byte("localhost"))
	data := binary.BigEndian.AppendUint32(append(party[:], flags), counter)
	of := sha256.Sum256(client)
	sum := sha256.Sum256(append(bytes.Clone(data), of[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, pair, sum[:])
	must.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	answer, err := json.Marshal(map[string]any{
		"id": encode(id), "rawId": encode(id), "type": "public-key", "response": map[string]string{
			"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": encode([]byte(person)),
		},
	})
	must.NoError(t, err)
	return answer
}

// A program may come to synchronise a key, and a copy has a counter of its own. Its person is
// told, with a way in.
func TestAPasskeyThatChangedIsRefusedInWords(t *testing.T) {
	t.Parallel()
	w := setup(t)
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	id, link := bytes.Repeat([]byte{1}, 16), w.link("p1")
	asked, err := w.AskToJoin(t.Context(), link, "Ann")
	must.NoError(t, err)
	_, err = w.JoinWithPasskey(t.Context(), link, asked.Token, newPasskeyOf(t, asked, id, pair))
	must.NoError(t, err)
	signIn := func(by *ecdsa.PrivateKey, flags byte, counter uint32) error {
		asked, err := w.AskToSignIn(t.Context())
		must.NoError(t, err)
		_, err = w.SignInWithPasskey(t.Context(), asked.Token, signed(t, asked, id, by, "p1", flags, counter))
		return err
	}
	const verified, synchronised = 0x05, 0x0d
	must.NoError(t, signIn(pair, verified, 5))
	for name, err := range map[string]error{"synchronised": signIn(pair, synchronised, 6), "a copy": signIn(pair, verified, 4)} {
		var told *domain.Error
		if !errors.As(err, &told) || told.Kind != domain.KindUnauthorized || !strings.Contains(told.Message, "has changed") || !strings.Contains(told.Hint, "new link") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must.NoError(t, signIn(pair, verified, 6))
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.NoError(t, err)
	if err := signIn(stranger, verified, 7); err == nil || strings.Contains(err.Error(), "has changed") {
		t.Errorf("another key: %v", err)
	}
}
