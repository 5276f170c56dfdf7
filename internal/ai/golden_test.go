package ai

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"humanqa/internal/testing/must"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares the whole answer with the file of that name.
func golden(t *testing.T, name string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	must.NoError(t, err)
	text = append(text, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		must.NoError(t, os.WriteFile(path, text, 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	if string(text) != string(want) {
		t.Errorf("%s differs; got\n%s", path, text)
	}
}
