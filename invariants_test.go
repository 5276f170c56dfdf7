package humanqa_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa"
	"humanqa/internal/testing/must"
)

var update = flag.Bool("update", false, "write the table of invariants into ARCHITECTURE.md")

const (
	architecture   = "ARCHITECTURE.md"
	invariantsHead = "| | Invariant | `humanqa fsck` | Held by |\n|---|---|---|---|\n"
)

// The table in ARCHITECTURE.md is written from the Go values. The folder of each
// test comes from the sources, so a test that moves needs only -update.
func TestTheTableOfInvariantsIsWrittenFromThem(t *testing.T) {
	t.Parallel()
	folders := testFolders(t)
	table := invariantsHead
	for i, one := range humanqa.Invariants {
		if one.Number != i+1 || one.Text == "" || len(one.HeldBy) == 0 {
			t.Errorf("invariant %d is %+v", i+1, one)
		}
		live := ""
		if one.Live {
			live = "yes"
		}
		table += fmt.Sprintf("| %d | %s | %s | %s |\n", one.Number, one.Text, live, heldBy(t, folders, one.HeldBy))
	}
	b, err := os.ReadFile(architecture)
	must.NoError(t, err)
	before, old, found := strings.Cut(string(b), invariantsHead)
	if !found {
		t.Fatalf("%s has no table of invariants", architecture)
	}
	for strings.HasPrefix(old, "|") {
		_, old, _ = strings.Cut(old, "\n")
	}
	want := before + table + old
	if *update {
		must.NoError(t, os.WriteFile(architecture, []byte(want), 0o600))
		return
	}
	if string(b) != want {
		t.Errorf("%s does not have the invariants as they are: run go test . -run Invariants -update", architecture)
	}
}

// testFolders gives the folders in which each test stands, by the test's name.
func testFolders(t *testing.T) map[string][]string {
	t.Helper()
	folders := map[string][]string{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for file, text := range files(t, "_test.go") {
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			if dir := path.Dir(file); !slices.Contains(folders[m[1]], dir) {
				folders[m[1]] = append(folders[m[1]], dir)
			}
		}
	}
	for name := range maps.Keys(folders) {
		slices.Sort(folders[name])
	}
	return folders
}

// heldBy lists tests by their folders, each folder once.
func heldBy(t *testing.T, folders map[string][]string, tests []string) string {
	t.Helper()
	var order []string
	byFolder := map[string][]string{}
	for _, name := range tests {
		if folders[name] == nil {
			t.Errorf("an invariant names %s, which is nowhere", name)
		}
		for _, dir := range folders[name] {
			if byFolder[dir] == nil {
				order = append(order, dir)
			}
			byFolder[dir] = append(byFolder[dir], name)
		}
	}
	var parts []string
	for _, dir := range order {
		parts = append(parts, "`"+dir+"` "+strings.Join(byFolder[dir], ", "))
	}
	return strings.Join(parts, "; ")
}
