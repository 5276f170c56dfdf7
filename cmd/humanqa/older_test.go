package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/internal/archive"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
)

// testdata/older is a backup of a service as of commit a2244a7 (schema 18, jobs of
// version 3), with a sandbox account that had tests of each end, and what that
// service answered. It is never written anew.
const olderAccount = "7131abad-bb65-57d3-998a-636f36b3317c"

// What an older version kept is taken over: migrated, the read models built anew
// beside the old ones, nothing lost; and whatever it answered is still answered. The new
// version is killed again and again in the middle of it, and goes on.
func TestADataDirectoryOfAnOlderVersionIsTakenOver(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t, "HUMANQA_ROLES=api,projector") // nothing happens by itself
	var out restored
	p.cli(&out, "restore", olderBackup(t))
	if out.Events != 78 { // and one more, which says how the log is proved
		t.Errorf("restore printed %+v", out)
	}
	seed, kills := rand.Uint64(), 2
	if *torture {
		kills = 20
	}
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 0))
	for range kills {
		s := p.launch()
		eventually.Within(t, eventually.Patience, func() error { // it answers while it migrates and rebuilds
			_, err := p.try("GET", "/readyz", "", nil)
			return err
		})
		time.Sleep(time.Duration(dice.IntN(600)) * time.Millisecond) // when the blow falls is the point
		s.kill()
	}
	s := p.start()
	var key struct{ APIKey string }
	p.cli(&key, "key", "create", "--account", olderAccount)
	answers, err := os.Open(filepath.Join("testdata", "older", "answers.ndjson"))
	must.NoError(t, err)
	defer func() { _ = answers.Close() }() // it is only read
	lines := bufio.NewScanner(answers)
	lines.Buffer(nil, 1<<20)
	asked := 0
	for ; lines.Scan(); asked++ {
		var was struct {
			Path   string
			Answer any
		}
		must.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(lines.Text(), "http://base", s.url(""))), &was))
		var is any
		must.NoError(t, json.Unmarshal(s.call(http.StatusOK, "GET", was.Path, key.APIKey, nil).body, &is))
		lacks(t, was.Path, was.Answer, is)
		if page, ok := was.Answer.(map[string]any); ok && strings.HasPrefix(was.Path, "/v1/events") {
			next, _ := page["next"].(string)
			s.call(http.StatusOK, "GET", "/v1/events?after="+next, key.APIKey, nil) // a cursor without a mark is taken
		}
	}
	if lines.Err() != nil || asked != 6 {
		t.Errorf("%d answers, %v", asked, lines.Err())
	}
	s.stop()
	if stdout, stderr, err := p.tryCLI("fsck"); err != nil { // read models against the fold, too
		t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
}

// lacks tells what of an answer is missing or another; keys may have come.
func lacks(t *testing.T, at string, was, is any) {
	t.Helper()
	switch was := was.(type) {
	case map[string]any:
		object, _ := is.(map[string]any)
		for key, value := range was {
			if _, there := object[key]; !there {
				t.Errorf("%s has no %s any more", at, key)
				continue
			}
			if key == "cursor" || key == "next" { // the mark of the log stands behind the place
				if place, _, _ := strings.Cut(fmt.Sprint(object[key]), "."); place != fmt.Sprint(value) {
					t.Errorf("%s %s is %v, was %v", at, key, object[key], value)
				}
				continue
			}
			lacks(t, at+" "+key, value, object[key])
		}
	case []any:
		list, _ := is.([]any)
		if len(list) != len(was) {
			t.Errorf("%s has %d entries, had %d", at, len(list), len(was))
			return
		}
		for i, value := range was {
			lacks(t, at, value, list[i])
		}
	default:
		if was != is {
			t.Errorf("%s is %v, was %v", at, is, was)
		}
	}
}

func olderBackup(t *testing.T) (file string) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "older", "backup.zip.gz"))
	must.NoError(t, err)
	defer func() { _ = packed.Close() }() // it is only read
	r, err := gzip.NewReader(packed)
	must.NoError(t, err)
	content, err := io.ReadAll(r)
	must.NoError(t, err)
	file = filepath.Join(t.TempDir(), "older.zip")
	must.NoError(t, os.WriteFile(file, content, 0o600))
	return file
}

// The new binary is installed, and has not been started: its schema is newer than the data's.
func TestABackupComesBeforeTheFirstStartOfANewBinary(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	cfg, err := service.ParseConfig(p.environ)
	must.NoError(t, err)
	from, err := archive.Open(olderBackup(t))
	must.NoError(t, err)
	must.NoError(t, backup.Restore(t.Context(), cfg, from, logging.New("text", logrus.ErrorLevel, io.Discard)))
	must.NoError(t, from.Close())
	file := filepath.Join(t.TempDir(), "before.zip")
	var made backup.Saved
	p.cli(&made, "backup", file)
	if made.Events != 77 {
		t.Errorf("backup printed %+v", made)
	}
	again, err := archive.Open(file)
	must.NoError(t, err)
	if again.Schema != 18 {
		t.Errorf("the backup has schema %d", again.Schema)
	}
	must.NoError(t, again.Close())
	var out restored
	newEmbedded(t).cli(&out, "restore", file)
	if out.Events != 78 || len(out.Findings) != 0 { // and one more, which says how the log is proved
		t.Errorf("restore printed %+v", out)
	}
}
