package vault_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/pgtest"
	"humanqa/internal/vault"
)

// script is a program of one line.
func script(t *testing.T, line string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "program")
	must.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+line+"\n"), 0o700))
	return path
}

// The keyset is a file of this test's, where a service has a store of keys.
func TestAProgramGivesTheKeysetAndAnotherKeepsTheNextOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	check := sealAll(t, b.vault, account)
	open := func() *vault.Vault {
		t.Helper()
		v, err := vault.Open(t.Context(), vault.Config{KeyCommand: "cat " + b.keyFile, DB: b.db})
		must.NoError(t, err)
		return v
	}
	running := open()
	check(t, running)
	for store, want := range map[string]string{
		"":      "name by --store a program",
		"false": "--store ended with exit status 1",
		"cat":   "does not give the keyset that was stored",
	} {
		if _, err := open().Rotate(t.Context(), vault.Rotation{Store: store}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("stored by %q: %v; want %q", store, err, want)
		}
	}
	if len(keys(t, b.keyFile)) != 1 || len(b.used(t)) != 1 {
		t.Error("a key is in use that no store has")
	}
	store := script(t, fmt.Sprintf("cat > %s", b.keyFile))
	for _, finish := range []bool{false, true} {
		if _, err := open().Rotate(t.Context(), vault.Rotation{Finish: finish, Store: store}); err != nil {
			t.Error(err)
		}
		check(t, open())
	}
	sealAll(t, running, "late")(t, open())
	if len(keys(t, b.keyFile)) != 2 {
		t.Error("the store has not got the next keyset")
	}
	_, err := vault.Open(t.Context(), vault.Config{KeyCommand: "cat " + filepath.Join(t.TempDir(), "none"), DB: pgtest.New(t)})
	if err == nil || !strings.HasPrefix(err.Error(), "HUMANQA_MASTER_KEY_COMMAND ended with exit status 1") {
		t.Errorf("a first start makes no keyset: %v", err)
	}
}

func TestAProgramThatGivesNoKeysetIsNamedWithoutItsOutput(t *testing.T) {
	t.Parallel()
	const key = "c2VjcmV0LWtleQ"
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx        context.Context
		line, want string
	}{
		"a failure":     {t.Context(), "echo " + key + "; echo " + key + " >&2; exit 3", "ended with exit status 3: run it by hand"},
		"garbage":       {t.Context(), "echo " + key, "holds no tink keyset"},
		"nothing":       {t.Context(), ":", "holds no tink keyset"},
		"half a keyset": {t.Context(), `echo '{"primaryKeyId":1,"key":[{"keyData":{"value":"` + key + "'", "holds no tink keyset"},
		"another use": {t.Context(), `echo '{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"` + key + `","value":"` + key +
			`=="},"status":"ENABLED","keyId":1,"outputPrefixType":"TINK"}]}'`, "holds no encryption keyset"},
		"no end of output": {t.Context(), "exec yes " + key, "printed more than 1048576 bytes"},
		"no end":           {ended, "exec sleep 600", "gave no answer within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := vault.ReadKeyset(c.ctx, vault.Config{KeyCommand: script(t, c.line)})
			if err == nil || !strings.HasPrefix(err.Error(), "HUMANQA_MASTER_KEY_COMMAND "+c.want) || strings.Contains(err.Error(), key) {
				t.Errorf("error %v; want %q", err, c.want)
			}
		})
	}
	for command, want := range map[string]string{" ": "names no program", "/no/such/program": "does not run"} {
		if _, err := vault.ReadKeyset(t.Context(), vault.Config{KeyCommand: command}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", command, err)
		}
	}
}
