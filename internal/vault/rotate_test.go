package vault_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/vault"
)

// rotate runs a rotation in a process of its own.
func (b bundle) rotate(t *testing.T, r vault.Rotation) vault.Rotated {
	t.Helper()
	out, err := b.open(t).Rotate(t.Context(), r)
	must.NoError(t, err)
	return out
}

// used are the master keys that the rows of a vault are wrapped under, by how many.
func (b bundle) used(t *testing.T) map[string]int {
	t.Helper()
	var rows []struct {
		ID string
		N  int
	}
	must.NoError(t, b.db.SelectContext(t.Context(), &rows, `
		SELECT encode(substring(wrapped FROM 5 FOR 4), 'hex') AS id, count(*) AS n FROM vault.data_keys WHERE wrapped IS NOT NULL GROUP BY 1
		UNION ALL
		SELECT encode(substring(fingerprint FROM 5 FOR 4), 'hex'), count(*) FROM vault.data_keys WHERE wrapped IS NOT NULL GROUP BY 1
		UNION ALL
		SELECT encode(substring(wrapped FROM 2 FOR 4), 'hex'), count(*) FROM vault.subject_keys WHERE wrapped IS NOT NULL GROUP BY 1`))
	under := map[string]int{}
	for _, r := range rows {
		under[r.ID] += r.N
	}
	return under
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	must.NoError(t, err)
	return text
}

// keys are the keys in a file by their ids, each with its status and its type.
func keys(t *testing.T, file string) map[string]string {
	t.Helper()
	var stored struct {
		Key []struct {
			KeyID   uint32 `json:"keyId"`
			Status  string `json:"status"`
			KeyData struct {
				TypeURL string `json:"typeUrl"`
			} `json:"keyData"`
		} `json:"key"`
	}
	must.NoError(t, json.Unmarshal(content(t, file), &stored))
	found := map[string]string{}
	for _, k := range stored.Key {
		found[fmt.Sprintf("%08x", k.KeyID)] = k.Status + " " + k.KeyData.TypeURL[strings.LastIndex(k.KeyData.TypeURL, ".")+1:]
	}
	return found
}

// opener checks that what was sealed opens in a process.
type opener func(*testing.T, *vault.Vault)

// sealing seals a secret of an account and a text of a subject, each of which may be new.
func sealing(ctx context.Context, v *vault.Vault, name string) (opener, error) {
	sealed, err := v.Seal(ctx, name, stream, []byte(secret))
	if err != nil {
		return nil, err
	}
	text, err := v.SealText(ctx, "job-"+name, name, []byte(secret))
	return func(t *testing.T, v *vault.Vault) {
		t.Helper()
		plain, err := v.Unseal(t.Context(), name, stream, sealed)
		if err != nil || string(plain) != secret {
			t.Errorf("the secret of %s opens to %q, %v", name, plain, err)
		}
		if plain, err = v.OpenText(t.Context(), "job-"+name, []byte(text)); err != nil || string(plain) != secret {
			t.Errorf("the text of %s opens to %q, %v", name, plain, err)
		}
	}, err
}

func sealAll(t *testing.T, v *vault.Vault, name string) opener {
	t.Helper()
	opens, err := sealing(t.Context(), v, name)
	must.NoError(t, err)
	return opens
}

func TestARotationLosesNoSecretOfRunningProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	must.NoError(t, b.vault.Shred(t.Context(), "gone"))
	must.NoError(t, b.vault.ShredSubject(t.Context(), "job-gone", account))
	old, macs := b.vault.MACKeys(0)
	opens := []opener{sealAll(t, b.vault, "before")}
	reader, writer, idle := b.open(t), b.open(t), b.open(t) // all with the old keyset in memory

	out := b.rotate(t, vault.Rotation{})
	if out.Step != vault.KeysRewrapped || out.Rewrapped != 2 || b.used(t)[out.KeyID] != 3 || len(b.used(t)) != 1 {
		t.Errorf("%+v, keys under %v", out, b.used(t))
	}
	opens[0](t, reader) // it meets a key that it does not know
	opens = append(opens, sealAll(t, writer, "during"))
	if again := b.rotate(t, vault.Rotation{}); again.KeyID != out.KeyID || again.Rewrapped != 0 {
		t.Errorf("a repeat: %+v", again)
	}
	info, err := os.Stat(b.keyFile)
	must.NoError(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v", info.Mode())
	}

	for range 2 { // a repeat does nothing
		if out := b.rotate(t, vault.Rotation{Finish: true}); out.Step != vault.OldKeysOut {
			t.Errorf("%+v", out)
		}
	}
	opens = append(opens, sealAll(t, idle, "after"))
	if under := b.used(t); len(under) != 1 || under[out.KeyID] != 9 {
		t.Errorf("keys under %v, want all under %s", under, out.KeyID)
	}
	want := map[string]string{fmt.Sprintf("%08x", old): "DISABLED HmacKey", out.KeyID: "ENABLED AesGcmKey"}
	if got := keys(t, b.keyFile); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the file has %v, want %v", got, want)
	}
	for _, v := range []*vault.Vault{b.vault, reader, writer, idle, b.open(t)} {
		for _, check := range opens {
			check(t, v)
		}
		must.NoError(t, v.FollowKeyset(t.Context()))
		primary, kept := v.MACKeys(old)
		if fmt.Sprintf("%08x", primary) != out.KeyID || !bytes.Equal(kept[old], macs[old]) {
			t.Errorf("new MACs are made under %08x, and those of the old key are verified: %t", primary, bytes.Equal(kept[old], macs[old]))
		}
	}
	if gone, err := b.vault.Shredded(t.Context()); err != nil || len(gone) != 1 {
		t.Errorf("destroyed keys: %v, %v", gone, err)
	}
	if second := b.rotate(t, vault.Rotation{}); second.KeyID == out.KeyID || second.Rewrapped != 6 {
		t.Errorf("a second rotation: %+v", second)
	}
}

// Each writer makes new keys all the time, and its keyset becomes older in the middle.
func TestWritersBesideRotationsLoseNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var opens [3][]opener
	var errs [3]error
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for n := range opens {
		v := b.open(t)
		writers.Go(func() {
			for i := 0; errs[n] == nil; i++ {
				var check opener
				check, errs[n] = sealing(t.Context(), v, fmt.Sprint(n, "-", i))
				if domain.IsKind(errs[n], domain.KindUnavailable) { // a whole rotation went by within one call: clients repeat it
					errs[n] = nil
				} else {
					opens[n] = append(opens[n], check)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 3 {
		b.rotate(t, vault.Rotation{})
		b.rotate(t, vault.Rotation{Finish: true})
	}
	close(stop)
	writers.Wait()
	must.NoError(t, errors.Join(errs[:]...))
	fresh := b.open(t)
	if primary, macs := fresh.MACKeys(0); len(macs) != 4 || len(b.used(t)) != 1 || b.used(t)[fmt.Sprintf("%08x", primary)] == 0 {
		t.Errorf("%d keys, data keys under %v, want all under %08x", len(macs), b.used(t), primary)
	}
	for _, some := range opens {
		for _, check := range some {
			check(t, fresh)
		}
	}
}

// A row that does not open, and a file that cannot be replaced, end a rotation as a crash does.
func TestARotationGoesOnWhereACrashHasCutItOff(t *testing.T) {
	t.Parallel()
	b := setup(t)
	check := sealAll(t, b.vault, "zz")
	old, _ := b.vault.MACKeys(0)
	first := fmt.Sprintf("%08x", old)

	out := b.rotate(t, vault.Rotation{Apart: true}) // the file has a new key
	if out.Step != vault.KeyAdded || out.KeyID == first || b.used(t)[first] != 3 {
		t.Errorf("%+v, keys under %v", out, b.used(t))
	}
	check(t, b.open(t))

	_, err := b.db.ExecContext(t.Context(), `INSERT INTO vault.data_keys (account_id, wrapped, fingerprint)
		SELECT 'moved', wrapped, fingerprint FROM vault.data_keys`)
	must.NoError(t, err)
	_, err = b.open(t).Rotate(t.Context(), vault.Rotation{Apart: true}) // the database has, too
	if err == nil || !strings.Contains(err.Error(), "open the data key of account moved") {
		t.Fatalf("a row that does not open: %v", err)
	}
	check(t, b.open(t))
	_, err = b.open(t).Rotate(t.Context(), vault.Rotation{Finish: true})
	if err == nil || !strings.Contains(err.Error(), "data keys are wrapped under an old master key: run humanqa keys rotate first") {
		t.Errorf("the old key is taken out: %v", err)
	}
	_, err = b.db.ExecContext(t.Context(), `DELETE FROM vault.data_keys WHERE account_id = 'moved'`)
	must.NoError(t, err)
	out = b.rotate(t, vault.Rotation{Apart: true})
	if out.Step != vault.KeysRewrapped || len(keys(t, b.keyFile)) != 2 || b.used(t)[out.KeyID] != 3 {
		t.Errorf("%+v, keys under %v", out, b.used(t))
	}

	_, err = b.db.ExecContext(t.Context(), `UPDATE vault.master_keys SET wraps = false WHERE key_id <> decode($1, 'hex')`, out.KeyID)
	must.NoError(t, err) // only the file has the old key
	check(t, b.open(t))
	b.rotate(t, vault.Rotation{Finish: true})
	if got := keys(t, b.keyFile)[first]; got != "DISABLED HmacKey" {
		t.Errorf("the old key is %q", got)
	}
	check(t, b.open(t))
}

func TestAnOlderKeysetIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := content(t, b.keyFile)
	out := b.rotate(t, vault.Rotation{})
	must.NoError(t, b.vault.FollowKeyset(t.Context()))
	refuses := func(content []byte, want string) {
		t.Helper()
		other := filepath.Join(t.TempDir(), "other.json")
		must.NoError(t, os.WriteFile(other, content, 0o600))
		if _, err := vault.Open(t.Context(), vault.Config{KeyFile: other, DB: b.db}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
	lacks := "lacks the key " + out.KeyID + ", which this database's keys are wrapped under: put the newest keyset back"
	refuses(first, lacks)
	b.rotate(t, vault.Rotation{Finish: true})
	refuses(first, lacks)

	var whole map[string]any
	must.NoError(t, json.Unmarshal(content(t, b.keyFile), &whole))
	all, _ := whole["key"].([]any)
	whole["key"] = all[len(all)-1:] // without the one that only verifies
	alone, err := json.Marshal(whole)
	must.NoError(t, err)
	refuses(alone, "which proves events of the log")

	must.NoError(t, os.WriteFile(b.keyFile, first, 0o600)) // under a running process
	if _, macs := b.vault.MACKeys(1); len(macs) != 2 {
		t.Errorf("it took the older file: %d keys", len(macs))
	}
	sealAll(t, b.vault, "new")(t, b.vault)
}

func TestTwoRotationsAtOnceAreOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tx, err := b.db.BeginTxx(t.Context(), nil)
	must.NoError(t, err)
	var held bool
	must.NoError(t, tx.GetContext(t.Context(), &held, vault.LockRotation))
	if _, err := b.vault.Rotate(t.Context(), vault.Rotation{}); !held || err == nil || !strings.Contains(err.Error(), "another process rotates the master key") {
		t.Errorf("held %t: %v", held, err)
	}
	must.NoError(t, tx.Rollback())
	b.rotate(t, vault.Rotation{})
}

// The row was read before the rotation, and is opened after it.
func TestARowThatWasReadBeforeARotationOpensBehindIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	old, err := vault.WrapFor(b.vault, "early")
	must.NoError(t, err)
	b.rotate(t, vault.Rotation{})
	b.rotate(t, vault.Rotation{Finish: true})
	must.NoError(t, b.vault.FollowKeyset(t.Context()))
	if _, macs := b.vault.MACKeys(0); len(macs) != 2 {
		t.Fatal("it has not read the next keyset")
	}
	if err := vault.Opens(b.vault, "early", old); err != nil {
		t.Error(err)
	}
}

// A process of another machine has a copy of the file.
func TestAProcessWithAnOlderKeysetSaysSoAndGoesOnWithTheNewestOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	there := bundle{db: b.db, keyFile: filepath.Join(t.TempDir(), "copy.json")}
	carry := func() {
		t.Helper()
		must.NoError(t, os.WriteFile(there.keyFile, content(t, b.keyFile), 0o600))
	}
	carry()
	other := there.open(t)
	b.rotate(t, vault.Rotation{Apart: true})
	sealAll(t, other, "early") // nothing is under the new key
	out := b.rotate(t, vault.Rotation{Apart: true})
	if out.Step != vault.KeysRewrapped {
		t.Fatalf("%+v", out)
	}
	_, account := other.Seal(t.Context(), "late", stream, []byte(secret))
	_, subject := other.SealText(t.Context(), "job-late", "late", []byte(secret))
	for name, err := range map[string]error{"an account": account, "a subject": subject, "the look": other.FollowKeyset(t.Context())} {
		if !domain.IsKind(err, domain.KindUnavailable) || !strings.Contains(err.Error(), "lacks the key "+out.KeyID) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if under := b.used(t); len(under) != 1 {
		t.Errorf("data keys are stored under %v", under)
	}
	carry()
	eventually.Within(t, eventually.Patience, func() error { return other.FollowKeyset(t.Context()) })
	sealAll(t, other, "late")(t, b.open(t))
}
