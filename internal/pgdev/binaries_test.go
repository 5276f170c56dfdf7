package pgdev

import (
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

func TestAClusterIsNeverOpenedByAnotherMajorVersion(t *testing.T) {
	t.Parallel()
	_, err := findBinaries(t.Context(), "9")
	if err == nil || !strings.Contains(err.Error(), "made by PostgreSQL 9") || !strings.Contains(err.Error(), "install version 9") {
		t.Errorf("error = %v, want the versions and the next step", err)
	}
}

func TestTheClusterPicksItsOwnVersion(t *testing.T) {
	t.Parallel()
	first, err := findBinaries(t.Context(), "")
	must.NoError(t, err)
	major, err := majorOf(t.Context(), first)
	must.NoError(t, err)
	same, err := findBinaries(t.Context(), major)
	must.NoError(t, err)
	if got, err := majorOf(t.Context(), same); err != nil || got != major {
		t.Errorf("version = %s, %v; want %s", got, err, major)
	}
}

func TestTheNewestPackageIsANumberNotAWord(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]int{
		"/usr/lib/postgresql/9/bin":           9,
		"/usr/lib/postgresql/15/bin":          15,
		"/usr/pgsql-16/bin":                   16,
		"/opt/homebrew/opt/postgresql@17/bin": 17,
		"/opt/homebrew/opt/postgresql/bin":    0,
	} {
		if got := pathVersion(path); got != want {
			t.Errorf("%s = %d, want %d", path, got, want)
		}
	}
}

func TestTheReasonIsTheLastFatalLine(t *testing.T) {
	t.Parallel()
	const log = `2026-01-01 00:00:00.000 UTC [1] FATAL:  an old story
2026-01-01 00:00:01.000 UTC [2] LOG:  starting
2026-01-01 00:00:02.000 UTC [2] FATAL:  the disk is full
2026-01-01 00:00:03.000 UTC [2] LOG:  database system is shut down
`
	if got := lastFatal([]byte(log)); got != "the disk is full" {
		t.Errorf("reason = %q", got)
	}
	if got := lastFatal([]byte("nothing of note\n")); got != "" {
		t.Errorf("reason = %q, want none", got)
	}
}
