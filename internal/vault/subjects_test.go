package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"humanqa/domain"
	"humanqa/internal/testing/must"
	"humanqa/internal/vault"
)

const subject = "job-1"

func sealText(t *testing.T, v *vault.Vault) []byte {
	t.Helper()
	sealed, err := v.SealText(t.Context(), subject, account, []byte(secret))
	must.NoError(t, err)
	return []byte(sealed)
}

func TestATextOpensForItsSubjectOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := sealText(t, b.vault)
	if bytes.Contains(sealed, []byte(secret)) || !bytes.HasPrefix(sealed, []byte("s1.")) {
		t.Errorf("sealed is %s", sealed)
	}
	if again := sealText(t, b.vault); !bytes.Equal(again, sealed) {
		t.Error("an append that is sent again would have other bytes")
	}
	plain, err := b.open(t).OpenText(t.Context(), subject, sealed) // also in another process
	if err != nil || string(plain) != secret {
		t.Errorf("it opens to %q, %v", plain, err)
	}
	_, err = b.vault.SealText(t.Context(), "job-2", account, []byte("other"))
	must.NoError(t, err)
	for name, c := range map[string]struct {
		subject string
		sealed  []byte
		want    error
	}{
		"another subject":   {"job-2", sealed, domain.ErrUnsealable},
		"an unknown one":    {"job-3", sealed, domain.ErrKeyLost},
		"another format":    {subject, append([]byte("s2."), sealed[3:]...), domain.ErrUnsealable},
		"not base64":        {subject, []byte("s1.###"), domain.ErrUnsealable},
		"cut short":         {subject, sealed[:len(sealed)-4], domain.ErrUnsealable},
		"a few bytes":       {subject, []byte("s1.AQ"), domain.ErrUnsealable},
		"an account's seal": {subject, []byte(seal(t, b.vault)), domain.ErrUnsealable},
	} {
		if plain, err := b.vault.OpenText(t.Context(), c.subject, c.sealed); !errors.Is(err, c.want) {
			t.Errorf("%s: %q, %v; want %v", name, plain, err, c.want)
		}
	}
}

func TestAnErasedSubjectNeverOpensAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed, other := sealText(t, b.vault), b.open(t)
	must.NoError(t, b.vault.ShredSubject(t.Context(), subject, account))
	must.NoError(t, b.vault.ShredSubject(t.Context(), subject, account)) // a repeat
	must.NoError(t, b.vault.ShredSubject(t.Context(), "job-without-a-key", account))
	for name, v := range map[string]*vault.Vault{"here": b.vault, "elsewhere": other, "after a restart": b.open(t)} {
		if plain, err := v.OpenText(t.Context(), subject, sealed); !errors.Is(err, domain.ErrShredded) {
			t.Errorf("%s it opens to %q, %v", name, plain, err)
		}
		for _, gone := range []string{subject, "job-without-a-key"} {
			if _, err := v.SealText(t.Context(), gone, account, []byte(secret)); !errors.Is(err, domain.ErrShredded) {
				t.Errorf("%s a text of %s is sealed: %v", name, gone, err)
			}
		}
	}
	var left int
	must.NoError(t, b.db.GetContext(t.Context(), &left, "SELECT count(*) FROM vault.subject_keys WHERE wrapped IS NOT NULL"))
	if left != 0 {
		t.Errorf("%d keys are left", left)
	}
}

// A process that has the key in its memory opens texts a little longer, and no more then.
func TestACopyOfAKeyExpires(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed, other := sealText(t, b.vault), b.open(t)
	_, err := other.OpenText(t.Context(), subject, sealed)
	must.NoError(t, err)
	must.NoError(t, b.vault.ShredSubject(t.Context(), subject, account))
	vault.ExpireSubjects(other)
	if plain, err := other.OpenText(t.Context(), subject, sealed); !errors.Is(err, domain.ErrShredded) {
		t.Errorf("it opens to %q, %v", plain, err)
	}
}

func TestManyFirstTextsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t)
	vaults := []*vault.Vault{b.vault, b.open(t)}
	const jobs = 20
	var wg sync.WaitGroup
	sealed, errs := make([]string, 2*jobs), make([]error, 2*jobs)
	for i := range sealed {
		wg.Go(func() {
			sealed[i], errs[i] = vaults[i%2].SealText(t.Context(), fmt.Sprint("job-", i/2), account, []byte(secret))
		})
	}
	wg.Wait()
	must.NoError(t, errors.Join(errs...))
	names := make([]string, jobs)
	for i := range names {
		names[i] = fmt.Sprint("job-", i)
	}
	reader := b.open(t)
	must.NoError(t, reader.Expect(t.Context(), append(names, "job-unknown")))
	must.NoError(t, b.db.Close()) // nothing is asked any more
	for i, text := range sealed {
		if plain, err := reader.OpenText(t.Context(), names[i/2], []byte(text)); err != nil || string(plain) != secret {
			t.Errorf("text %d opens to %q, %v", i, plain, err)
		}
	}
}

// Connections keep the plan that they made when there were few keys.
func TestANewKeyCostsTheSameHoweverManyThereAre(t *testing.T) {
	t.Parallel()
	b := setup(t)
	conn, err := b.db.Connx(t.Context())
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, conn.Close()) })
	run := func(statement string) {
		t.Helper()
		_, err := conn.ExecContext(t.Context(), statement)
		must.NoError(t, err)
	}
	run("SET plan_cache_mode = force_generic_plan")
	for _, keys := range []int{1, 300, 3000} {
		run("TRUNCATE vault.subject_keys")
		run(fmt.Sprintf("INSERT INTO vault.subject_keys SELECT 'job-' || i, 'acc', '' FROM generate_series(1, %d) AS i", keys))
		run("ANALYZE vault.subject_keys")
		run(fmt.Sprintf("PREPARE store_%d AS %s", keys, vault.InsertSubjectKeys))
		var plan []string
		must.NoError(t, conn.SelectContext(t.Context(), &plan, fmt.Sprintf("EXPLAIN (COSTS OFF) EXECUTE store_%d (NULL)", keys)))
		if text := strings.Join(plan, "\n"); strings.Contains(text, "Hash Join") || strings.Contains(text, "Merge Join") {
			t.Errorf("made at %d keys, it reads those of all jobs:\n%s", keys, text)
		}
	}
}

// Before a text is in the log, its key is where the operator wants every commit to be.
func TestANewKeyWaitsAsFarAsItsSessionDoes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, statement := range []string{
		`CREATE TABLE waits (synchronous_commit text)`,
		`CREATE FUNCTION note_wait() RETURNS trigger LANGUAGE plpgsql AS
			$$BEGIN INSERT INTO waits VALUES (current_setting('synchronous_commit')); RETURN NEW; END$$`,
		`CREATE TRIGGER note_wait BEFORE INSERT ON vault.subject_keys FOR EACH ROW EXECUTE FUNCTION note_wait()`,
		`DO $$BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = remote_apply', current_database()); END$$`,
	} {
		_, err := b.db.ExecContext(t.Context(), statement)
		must.NoError(t, err)
	}
	b.db.SetMaxIdleConns(0) // every later session is new
	sealText(t, b.vault)
	var waited string
	if err := b.db.GetContext(t.Context(), &waited, `SELECT synchronous_commit FROM waits`); err != nil || waited != "remote_apply" {
		t.Errorf("the key was committed with %q, %v", waited, err)
	}
}

func TestAKeyOfASubjectIsStoredWrapped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sealed := sealText(t, b.vault)
	const steal = `
		INSERT INTO vault.subject_keys (subject, account_id, wrapped)
		SELECT 'job-thief', account_id, wrapped
		FROM vault.subject_keys`
	_, err := b.db.ExecContext(t.Context(), steal)
	must.NoError(t, err)
	if plain, err := b.vault.OpenText(t.Context(), "job-thief", sealed); err == nil {
		t.Errorf("a copied row opened %q", plain)
	}
	reads, writes := b.open(t), b.open(t)
	must.NoError(t, b.db.Close())
	if _, err := reads.OpenText(t.Context(), subject, sealed); err == nil || errors.Is(err, domain.ErrShredded) || errors.Is(err, domain.ErrKeyLost) {
		t.Errorf("while the database is away: %v", err)
	}
	if _, err := writes.SealText(t.Context(), "job-new", account, nil); err == nil || strings.Contains(err.Error(), "erased") {
		t.Errorf("while the database is away: %v", err)
	}
}
