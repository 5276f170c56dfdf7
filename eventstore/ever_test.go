package eventstore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// everFile lists each version of each type that was ever written, with the SHA-256 of its
// golden file. A line is never changed or removed: some log holds such events.
const everFile = "testdata/ever.txt"

// A type that no command writes any more keeps its code, its upcasters and its golden
// files. -update adds the lines of new ones.
func TestWhatWasEverWrittenStays(t *testing.T) {
	content, err := os.ReadFile(everFile)
	if !errors.Is(err, fs.ErrNotExist) {
		must.NoError(t, err)
	}
	lines := slices.Collect(strings.Lines(string(content)))
	listed := map[string]bool{}
	for _, line := range lines {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			t.Fatalf("%s: %q", everFile, line)
		}
		version, err := strconv.Atoi(strings.TrimPrefix(fields[1], "v"))
		must.NoError(t, err)
		name := goldenFile(fields[0], version)
		listed[name] = true
		golden, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("%s v%d was written once, and its golden file is gone: %v", fields[0], version, err)
			continue
		}
		if sum := sha256.Sum256(golden); hex.EncodeToString(sum[:]) != fields[2] {
			t.Errorf("%s is not what was written: a golden file is never changed", name)
		}
		if Version(fields[0]) < version {
			t.Errorf("%s v%d was written once, and this binary knows version %d: keep the type, and write its upcasters", fields[0], version,
				Version(fields[0]))
		}
	}
	for _, eventType := range Types() {
		for version := 1; version <= Version(eventType); version++ {
			name := goldenFile(eventType, version)
			if listed[name] {
				continue
			}
			golden, err := os.ReadFile(name)
			if err != nil {
				t.Errorf("%s v%d has no golden file: %v", eventType, version, err)
				continue
			}
			sum := sha256.Sum256(golden)
			lines = append(lines, fmt.Sprintf("%s v%d %s\n", eventType, version, hex.EncodeToString(sum[:])))
			if !*update {
				t.Errorf("%s does not list %s v%d: add it with -update", everFile, eventType, version)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	must.NoError(t, err)
	if len(files) != len(lines) {
		t.Errorf("%d golden files, and %d versions of types", len(files), len(lines))
	}
	if *update {
		slices.Sort(lines)
		must.NoError(t, os.WriteFile(everFile, []byte(strings.Join(lines, "")), 0o644))
	}
}

// A newer binary's event is not taken for one that cannot be read, and its type is told.
func TestWhatANewerVersionWroteIsToldApart(t *testing.T) {
	t.Parallel()
	var f Feed
	arrive := func(eventType, meta string) {
		raw := RawEvent{Type: eventType, Data: []byte(`{"reason":"r"}`), Meta: []byte(meta)}
		s := slot{size: 1}
		var err error
		if s.event, err = raw.Decode(); err != nil {
			errors.As(err, &s.failed)
		}
		f.unknown.note(s)
	}
	const command = `"commandId":"6a1f7c1e-0000-5000-8000-6f0a3b1c2d4e"`
	arrive("account.suspended", `{"schema":1,`+command+`}`) // known
	arrive("account.suspended", `{"schema":"one"}`)         // damaged
	arrive("theirs.happened", `{"of":"another client"}`)    // not ours
	arrive("job.levitated", `{"schema":1,`+command+`}`)     // newer
	arrive("job.levitated", `{"schema":1,`+command+`}`)     // newer
	arrive("account.suspended", `{"schema":9,`+command+`}`) // a newer version
	arrive("<b>Job</b>\u202e", `{"schema":1,`+command+`}`)  // newer, by a strange name
	for i := range 2 * unknownTypes {
		arrive(fmt.Sprintf("job.kind_%c%c", 'a'+i/26, 'a'+i%26), `{"schema":1,`+command+`}`)
	}
	list := f.Unknown()
	names := map[string]int64{}
	for _, u := range list {
		names[u.String()] = u.Events
	}
	if names["job.levitated"] != 2 || names["account.suspended in version 9"] != 1 || names["one with a strange name"] != 1 || len(list) != unknownTypes {
		t.Errorf("got %v", names)
	}
	if f.unknown.events != 4+2*unknownTypes {
		t.Errorf("%d events are counted", f.unknown.events)
	}
}
