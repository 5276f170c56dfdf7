package vault_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"humanqa/domain"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
)

const (
	account = "acc-1"
	stream  = "job-1"
	secret  = "correct horse battery staple"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

type bundle struct {
	db      *sqlx.DB
	keyFile string
	vault   *vault.Vault
}

func setup(t *testing.T) bundle {
	t.Helper()
	b := bundle{db: pgtest.New(t), keyFile: filepath.Join(t.TempDir(), "keys", "master.json")}
	b.vault = b.open(t)
	return b
}

// open is another process on the same database and key file.
func (b bundle) open(t *testing.T) *vault.Vault {
	t.Helper()
	v, err := vault.Open(t.Context(), vault.Config{KeyFile: b.keyFile, DB: b.db})
	must.NoError(t, err)
	return v
}

func seal(t *testing.T, v *vault.Vault) string {
	t.Helper()
	sealed, err := v.Seal(t.Context(), account, stream, []byte(secret))
	must.NoError(t, err)
	return sealed
}

func wantOpens(t *testing.T, v *vault.Vault, sealed string) {
	t.Helper()
	plain, err := v.Unseal(t.Context(), account, stream, sealed)
	if err != nil || string(plain) != secret {
		t.Errorf("unseal: %q, %v; want the secret", plain, err)
	}
}

func TestASealedSecretOpensOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := seal(t, b.vault)

	if !regexp.MustCompile(`^v1\.[A-Za-z0-9_-]+$`).MatchString(sealed) {
		t.Errorf("sealed %q is not v1.<base64url>", sealed)
	}
	if strings.Contains(sealed, secret) {
		t.Error("the plaintext shows through")
	}
	if again := seal(t, b.vault); again == sealed {
		t.Error("sealing twice gives the same ciphertext")
	}
	wantOpens(t, b.vault, sealed)

	_, err := b.vault.Seal(t.Context(), "acc-2", stream, []byte("other"))
	must.NoError(t, err)
	for name, c := range map[string]struct{ account, stream, sealed string }{
		"another stream":     {account, "job-2", sealed},
		"another account":    {"acc-2", stream, sealed},
		"an unknown account": {"acc-3", stream, sealed},
		"another format":     {account, stream, "v2." + sealed[3:]},
		"not base64":         {account, stream, "v1.###"},
		"cut short":          {account, stream, sealed[:len(sealed)-4]},
		"a few bytes":        {account, stream, "v1.AQ"},
		"empty":              {account, stream, ""},
	} {
		if plain, err := b.vault.Unseal(t.Context(), c.account, c.stream, c.sealed); err == nil {
			t.Errorf("%s: opened to %q", name, plain)
		}
	}
}

func TestAnEmptySecretIsASecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed, err := b.vault.Seal(t.Context(), account, stream, nil)
	must.NoError(t, err)
	if plain, err := b.vault.Unseal(t.Context(), account, stream, sealed); err != nil || len(plain) != 0 {
		t.Errorf("unseal: %q, %v", plain, err)
	}
}

func TestARestartKeepsEverySecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := seal(t, b.vault)
	fingerprint := fingerprintOf(t, b.vault, account, secret)

	after := b.open(t)
	wantOpens(t, after, sealed)
	if got := fingerprintOf(t, after, account, secret); got != fingerprint {
		t.Errorf("fingerprint %s after a restart, %s before", got, fingerprint)
	}
}

func TestAShreddedSecretNeverOpensAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := seal(t, b.vault)
	must.NoError(t, b.vault.Shred(t.Context(), account))
	wantShredded := func(v *vault.Vault) {
		t.Helper()
		if plain, err := v.Unseal(t.Context(), account, stream, sealed); !errors.Is(err, domain.ErrShredded) {
			t.Errorf("unseal: %q, %v; want ErrShredded", plain, err)
		}
	}
	wantShredded(b.vault)
	wantShredded(b.open(t))

	for _, v := range []*vault.Vault{b.vault, b.open(t)} { // and the account gets no other key
		if _, err := v.Seal(t.Context(), account, stream, []byte(secret)); !errors.Is(err, domain.ErrShredded) {
			t.Errorf("seal: %v; want ErrShredded", err)
		}
		if _, err := v.Fingerprint(t.Context(), account, "use", []byte(secret)); !errors.Is(err, domain.ErrShredded) {
			t.Errorf("fingerprint: %v; want ErrShredded", err)
		}
	}
	if err := b.vault.Shred(t.Context(), account); err != nil {
		t.Errorf("shredding once more: %v", err)
	}
	if err := b.vault.Shred(t.Context(), "never-had-a-key"); err != nil {
		t.Errorf("shredding nothing: %v", err)
	}
	if gone, err := b.vault.Shredded(t.Context()); err != nil || len(gone) != 2 || !gone[account] || !gone["never-had-a-key"] {
		t.Errorf("shredded: %v, %v", gone, err)
	}
}

// TestTwoProcessesAtTheirFirstStart race for the key file and for one
// account's key; all of them must end up with the same ones.
func TestTwoProcessesAtTheirFirstStart(t *testing.T) {
	t.Parallel()
	b := bundle{db: pgtest.New(t), keyFile: filepath.Join(t.TempDir(), "master.json")}
	const processes = 8
	var (
		wg     sync.WaitGroup
		vaults [processes]*vault.Vault
		sealed [processes]string
		errs   [processes]error
	)
	for i := range processes {
		wg.Go(func() {
			vaults[i], errs[i] = vault.Open(t.Context(), vault.Config{KeyFile: b.keyFile, DB: b.db})
			if errs[i] == nil {
				sealed[i], errs[i] = vaults[i].Seal(t.Context(), account, stream, []byte(secret))
			}
		})
	}
	wg.Wait()
	must.NoError(t, errors.Join(errs[:]...))
	for i := range processes {
		wantOpens(t, vaults[i], sealed[(i+1)%processes])
	}
	left, err := os.ReadDir(filepath.Dir(b.keyFile))
	if err != nil || len(left) != 1 {
		t.Errorf("%d files beside the key file, %v; want it alone", len(left)-1, err)
	}
}

func fingerprintOf(t *testing.T, v *vault.Vault, accountID, secret string) string {
	t.Helper()
	got, err := v.Fingerprint(t.Context(), accountID, "a use", []byte(secret))
	must.NoError(t, err)
	return got
}

func TestAFingerprintTellsTheSameSecretOfTheSameAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := fingerprintOf(t, b.vault, account, secret)
	if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(first) {
		t.Errorf("fingerprint %q is not 32 bytes of lower-case hex", first)
	}
	if again := fingerprintOf(t, b.vault, account, secret); again != first {
		t.Error("the same secret has two fingerprints")
	}
	if other := fingerprintOf(t, b.vault, account, secret+"!"); other == first {
		t.Error("two secrets share a fingerprint")
	}
	if other := fingerprintOf(t, b.vault, "acc-2", secret); other == first {
		t.Error("two accounts share a fingerprint")
	}
	for _, c := range []struct{ use, secret string }{{"another use", secret}, {"a", "use\n" + secret}, {"", "a use\n" + secret}} {
		other, err := b.vault.Fingerprint(t.Context(), account, c.use, []byte(c.secret))
		if err != nil || other == first {
			t.Errorf("the use %q of %q: %v, shared: %v", c.use, c.secret, err, other == first)
		}
	}
	if _, err := b.vault.Fingerprint(t.Context(), account, "a use\n"+secret[:1], []byte(secret[1:])); err == nil {
		t.Error("a use of two lines has a fingerprint, another one's")
	}
}

func TestDataKeysAreStoredWrapped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := seal(t, b.vault)

	// A row copied to another account opens nothing.
	const steal = `
		INSERT INTO vault.data_keys (account_id, wrapped, fingerprint)
		SELECT 'thief', wrapped, fingerprint
		FROM vault.data_keys
		WHERE account_id = $1`
	_, err := b.db.ExecContext(t.Context(), steal, account)
	must.NoError(t, err)
	if plain, err := b.vault.Unseal(t.Context(), "thief", stream, sealed); err == nil {
		t.Errorf("a copied row opened %q", plain)
	}
}

func TestAnUnusableKeyFileStopsTheStart(t *testing.T) {
	t.Parallel()
	b := setup(t)
	good, err := os.ReadFile(b.keyFile)
	must.NoError(t, err)
	if info, err := os.Stat(b.keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file was made with mode %v, %v; want 0600", info.Mode().Perm(), err)
	}
	stranger := bundle{db: pgtest.New(t), keyFile: filepath.Join(t.TempDir(), "master.json")}
	stranger.open(t)
	foreign, err := os.ReadFile(stranger.keyFile)
	must.NoError(t, err)

	for name, c := range map[string]struct {
		content []byte // nil: no file
		mode    os.FileMode
		want    string
	}{
		"corrupt":             {[]byte(`{"primaryKeyId":`), 0o600, "holds no tink keyset: restore it from its backup"},
		"empty":               {[]byte{}, 0o600, "holds no tink keyset: restore it from its backup"},
		"readable by others":  {good, 0o644, "readable by others: run chmod 600"},
		"readable by a group": {good, 0o640, "readable by others: run chmod 600"},
		"missing":             {nil, 0, "is missing, but the database holds keys made with it"},
		"of another database": {foreign, 0o600, "is not the one this database's keys were made with"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "master.json")
			if c.content != nil {
				must.NoError(t, os.WriteFile(path, c.content, c.mode))
				if err := os.Chmod(path, c.mode); err != nil { // past the umask
					t.Fatal(err)
				}
			}
			_, err := vault.Open(t.Context(), vault.Config{KeyFile: path, DB: b.db})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v; want one line with %q", err, c.want)
			}
		})
	}
}

// Nothing is sealed yet, but the keysets must not mix later on.
func TestTwoNodesMustShareOneKeyFile(t *testing.T) {
	t.Parallel()
	b := setup(t)
	own := filepath.Join(t.TempDir(), "own.json")
	_, err := vault.Open(t.Context(), vault.Config{KeyFile: own, DB: b.db})
	if err == nil || !strings.Contains(err.Error(), "is missing, but the database") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(own); err == nil {
		t.Error("a key file was made that opens nothing")
	}
}

func TestADatabaseThatIsAwayIsNotAShreddedSecret(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := seal(t, b.vault)
	cold := b.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cold.Unseal(ctx, account, stream, sealed); err == nil || errors.Is(err, domain.ErrShredded) {
		t.Errorf("error %v; want one that does not say shredded", err)
	}
}

func TestAKeysetWithoutAKeyThatTheDatabaseReliesOnIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for wraps, want := range map[bool]string{
		true:  "lacks the key 0a0b0c0d, which this database's keys are wrapped under: put the newest keyset back",
		false: "lacks the key 0a0b0c0d, which proves events of the log: put the newest keyset back",
	} {
		_, err := b.db.ExecContext(t.Context(), `INSERT INTO vault.master_keys VALUES ('\x0a0b0c0d', $1) ON CONFLICT (key_id) DO UPDATE SET wraps = $1`, wraps)
		must.NoError(t, err)
		if _, err := vault.Open(t.Context(), vault.Config{KeyFile: b.keyFile, DB: b.db}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
}
