package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"humanqa/internal/pgdev"
	"humanqa/internal/testing/must"
)

// Whatever command is typed in the wrong place, nothing is made there.
func TestACommandNeverMakesANewWorld(t *testing.T) {
	t.Parallel()
	const id = "11111111-1111-4111-8111-111111111111"
	for _, args := range [][]string{
		{"account", "create", "--name", "N"},
		{"account", "suspend", "--account", id},
		{"account", "reinstate", "--account", id},
		{"key", "create", "--account", id},
		{"key", "revoke", "--key", id + "." + id},
		{"credits", "grant", "--account", id, "--amount", "1"},
		{"checker", "create", "--name", "Ann"},
		{"job", "cancel", "--job", id},
		{"job", "untestable", "--job", id},
		{"project", "secret", "--project", id},
		{"replay", "job-" + id},
		{"projections", "list"},
		{"projections", "rebuild", "jobs"},
		{"projections", "retry", "jobs"},
		{"projections", "skip", "jobs", "--reason", "why not"},
		{"projections", "drop", "gone"},
		{"account", "list"},
		{"key", "list", "--account", id},
		{"checker", "list"},
		{"backup", filepath.Join(t.TempDir(), "backup.zip")},
		{"fsck"},
		{"audit", "checkpoint"},
		{"audit", "key"},
		{"audit", "prove", "--event", id},
		{"audit", "verify"},
		{"audit", "export"},
		{"export", "jobs"},
		{"analyst", "create", "--name", "ann"},
		{"demo"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			code, stdout, stderr := runProgram(t, []string{"HUMANQA_DATA_DIR=" + dir}, args...)
			line := regexp.MustCompile(`^humanqa: [^A-Z\n][^\n]*\n$`)
			if code != exitFailed || stdout != "" || !strings.Contains(stderr, "no data here: "+dir) || !line.MatchString(stderr) {
				t.Errorf("%d %q %q, want one line that there is no data", code, stdout, stderr)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the data directory was made: %v", err)
			}
		})
	}
}

func TestACommandInTheWrongPlaceNamesTheRightOne(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	must.NoError(t, os.MkdirAll(filepath.Join(home, ".humanqa", "postgres", "data"), 0o700))
	must.NoError(t, os.WriteFile(filepath.Join(home, ".humanqa", "postgres", "data", "PG_VERSION"), []byte("15\n"), 0o600))
	for _, wrong := range []string{home, filepath.Join(home, "bin", ".humanqa"), filepath.Join(home, "humanqa")} {
		_, _, stderr := runProgram(t, []string{"HUMANQA_DATA_DIR=" + wrong}, "fsck")
		if want := "humanqa: no data here: " + wrong + ", did you mean HUMANQA_DATA_DIR=" + filepath.Join(home, ".humanqa") + "\n"; stderr != want {
			t.Errorf("said %q, want %q", stderr, want)
		}
	}
}

// With a Postgres of the operator's own the keyset is what only serve makes.
func TestACommandOnAPostgresOfOnesOwnMakesNoKeyset(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, log := range []string{"", "esdb://127.0.0.1:1?tls=false"} {
		_, _, stderr := runProgram(t, []string{
			"HUMANQA_DATA_DIR=" + dir, "HUMANQA_DATABASE_URL=postgres://nowhere.invalid/x", "HUMANQA_EVENTSTORE_URL=" + log,
		}, "account", "create", "--name", "N")
		if want := "no data here: there is no keyset " + filepath.Join(dir, "master-keyset.json"); !strings.Contains(stderr, want) {
			t.Errorf("said %q, want %q", stderr, want)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the data directory was made: %v", err)
	}
}

// A Postgres without TLS is what an operator meets in the first hour with one of their own.
func unusablePostgres(t *testing.T, p *instance) {
	server, err := pgdev.Running(p.dir)
	must.NoError(t, err)
	url := strings.ReplaceAll(server.TCPDSN(pgdev.Database), "sslmode=disable", "sslmode=require")
	_, stderr, err := newEmbedded(t, "HUMANQA_DATABASE_URL="+url).tryCLI("serve")
	if exitCode(err) != exitFailed || !strings.Contains(stderr, "HUMANQA_DATABASE_URL") || !strings.Contains(stderr, "?sslmode=disable") {
		t.Errorf("%v, said %q", err, stderr)
	}
	if password := regexp.MustCompile(`:([^:@/]+)@`).FindStringSubmatch(url); password != nil && strings.Contains(stderr, password[1]) {
		t.Errorf("said %q, with the password", stderr)
	}
}
