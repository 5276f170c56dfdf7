package dashboard

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"humanqa/domain/job"
	"humanqa/httpapi/ui"
)

// batchTest is a test of a batch that is being written: a line of the form, and the rows
// of its own checklist. Without rows, the service writes the list.
type batchTest struct {
	N                    int // from 1
	Address, Title, What string
	Rows                 []checklistRow
	Unresolved           bool // its host has no address
	Wrong                bool // something is wrong with it
	key                  string
}

// Host is where the test happens.
func (t batchTest) Host() string { return ui.HostOf(t.Address) }

// Of names the test in each of its rows, by its place and a hash of its line.
func (t batchTest) Of() string { return strconv.Itoa(t.N) + "-" + t.key }

// Items is the number of items in the list.
func (t batchTest) Items() int {
	return len(slices.DeleteFunc(slices.Clone(t.Rows), checklistRow.blank))
}

// ID names a row in the page.
func (t batchTest) ID(row checklistRow) string { return fmt.Sprintf("%d-%d", t.N, row.N) }

// titleLength bounds the title that a line gives its test, in characters.
const titleLength = 120

// batchTests reads one test from each line, with its rows.
func batchTests(fields url.Values) (tests []batchTest) {
	for line := range strings.Lines(fields.Get("tests")) {
		line = strings.Join(strings.Fields(line), " ")
		address, what, _ := strings.Cut(line, " ")
		if address == "" {
			continue
		}
		address = ui.Address(address)
		title := what
		if what == "" {
			title, what = "Test of "+ui.HostOf(address), "Test the app as a whole."
		}
		if long := []rune(title); len(long) > titleLength {
			title = string(long[:titleLength-1]) + "…"
		}
		sum := sha256.Sum256([]byte(address + " " + what))
		tests = append(tests, batchTest{
			N: len(tests) + 1, Address: address, Title: title, What: what, key: fmt.Sprintf("%x", sum[:6]),
		})
	}
	giveRows(tests, fields)
	return tests
}

// giveRows gives each test the rows that name it. A line that was moved keeps its rows, and
// so does a line that was rewritten in its place. The rows of a removed line are dropped.
func giveRows(tests []batchTest, fields url.Values) {
	lists := map[string][]checklistRow{} // by the test that they name
	var order []string
	of := fields["of"]
	for i, row := range allRowsOf(fields) {
		if i >= len(of) || row.blank() {
			continue
		}
		if lists[of[i]] == nil {
			order = append(order, of[i])
		}
		row.N = len(lists[of[i]]) + 1
		lists[of[i]] = append(lists[of[i]], row)
	}
	given := make([]bool, len(tests))
	give := func(list string, fits func(t batchTest, place, key string) bool) {
		place, key, _ := strings.Cut(list, "-")
		for i := range tests {
			if !given[i] && lists[list] != nil && fits(tests[i], place, key) {
				tests[i].Rows, given[i], lists[list] = lists[list], true, nil
			}
		}
	}
	for _, fits := range []func(t batchTest, place, key string) bool{
		func(t batchTest, place, key string) bool { return t.Of() == place+"-"+key },
		func(t batchTest, _, key string) bool { return t.key == key },
		func(t batchTest, place, _ string) bool { return strconv.Itoa(t.N) == place },
	} {
		for _, list := range order {
			give(list, fits)
		}
	}
}

// blanks puts rows at the end of each list, for further items.
func blanks(rows []checklistRow) []checklistRow {
	for range blankRows {
		rows = append(rows, checklistRow{N: len(rows) + 1, Severity: job.Major})
	}
	return rows
}

var (
	batchPath     = regexp.MustCompile(`^jobs\[([0-9]+)\]\.(\w+)$`)
	batchItemPath = regexp.MustCompile(`^jobs\[([0-9]+)\]\.checklistItems\[([0-9]+)\]\.(description|expectedOutcome|severity)$`)
)

// nameTests names the fields of the items that are wrong. An error of a line has no field, so
// it is named after its test.
func nameTests(r *ui.Request, wrong error, tests []batchTest) {
	words := map[string]string{"url": "the address", "description": "what to test", "jobType": "the kind", "projectId": "the project"}
	r.Named("jobs", "tests")
	for path := range ui.Wrongs(wrong) {
		if of := batchItemPath.FindStringSubmatch(path); of != nil {
			test, _ := strconv.Atoi(of[1])
			item, _ := strconv.Atoi(of[2])
			tests[test].Wrong = true
			r.Named(path, itemFields[of[3]]+"-"+tests[test].ID(tests[test].Rows[item]))
		} else if of := batchPath.FindStringSubmatch(path); of != nil {
			n, _ := strconv.Atoi(of[1])
			r.Named(path, fmt.Sprintf("Test %d: %s", n+1, cmp.Or(words[of[2]], of[2])))
		}
	}
}
