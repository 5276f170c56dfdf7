// Suite shows how a run of go test goes. Its input is the output of go test -json, its
// argument the number of packages:
//
//	go test -json ./... | suite 103
//
// Each package gets its line as soon as it is done, with the packages that are left and
// the time so far. By itself, go test prints them in the order of their names, so that the
// longest package holds back all behind it. A package that failed first shows its output,
// without that of tests that passed. While no package ends for a minute, a line names
// those that run. The longest tests and packages stand at the end.
//
// The exit status is go test's to tell.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 2 {
		if total, err := strconv.Atoi(os.Args[1]); err == nil {
			show(os.Stdin, os.Stdout, total)
			return
		}
	}
	fmt.Fprintln(os.Stderr, "usage: go test -json PACKAGE… | suite COUNT")
	os.Exit(2)
}

// An event is a line of go test -json (go doc test2json, go help buildjson).
type event struct {
	Action      string
	Package     string
	Test        string // empty for what concerns the whole package
	Elapsed     float64
	Output      string
	ImportPath  string // what the compiler builds
	FailedBuild string // the ImportPath without which the package has no tests
}

type suite struct {
	out      io.Writer
	began    time.Time
	left     int
	running  map[string]*output
	compiler map[string]string // its errors, until they are shown
	tests    []span
	packages []span
	failed   []string
}

// output is what a running package has printed.
type output struct {
	kept  []string            // of failed tests, and of the package; its result comes last
	tests map[string][]string // of tests that have not ended
}

type span struct {
	name    string
	seconds float64
}

// show prints until the input ends.
func show(in io.Reader, out io.Writer, total int) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for r := bufio.NewReader(in); ; {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	s := &suite{out: out, began: time.Now(), left: total, running: map[string]*output{}, compiler: map[string]string{}}
	silence := time.NewTimer(time.Minute)
	for {
		select {
		case line, more := <-lines:
			if !more {
				s.end()
				return
			}
			if s.take(line) {
				silence.Reset(time.Minute)
			}
		case <-silence.C:
			s.tellRunning()
			silence.Reset(time.Minute)
		}
	}
}

// print passes over an error, which has no other place to go.
func (s *suite) print(parts ...string) { _, _ = io.WriteString(s.out, strings.Join(parts, "")) }

// take reports whether the line ended a package.
func (s *suite) take(line string) bool {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		s.print(line) // go's own words
		return false
	}
	if e.Action == "build-output" {
		s.compiler[e.ImportPath] += e.Output
	}
	if e.Package == "" {
		return false
	}
	p := s.running[e.Package]
	if p == nil {
		p = &output{tests: map[string][]string{}}
		s.running[e.Package] = p
	}
	ended := e.Action == "pass" || e.Action == "fail" || e.Action == "skip"
	switch {
	case e.Action == "output":
		p.add(e.Test, e.Output)
	case ended && e.Test != "":
		p.end(e.Test, e.Action == "fail")
		if !strings.Contains(e.Test, "/") {
			s.tests = append(s.tests, span{e.Package + " " + e.Test, e.Elapsed})
		}
	case ended:
		s.packageEnds(e, p)
		return true
	}
	return false
}

func (s *suite) packageEnds(e event, p *output) {
	delete(s.running, e.Package)
	s.left = max(s.left-1, 0)
	s.packages = append(s.packages, span{e.Package, e.Elapsed})
	result := p.kept[len(p.kept)-1]
	if p.kept = p.kept[:len(p.kept)-1]; e.Action == "fail" {
		s.failed = append(s.failed, e.Package)
		s.print(s.compiler[e.FailedBuild])
		delete(s.compiler, e.FailedBuild) // other packages need it, too
		for _, test := range slices.Sorted(maps.Keys(p.tests)) {
			p.end(test, true) // it ran when the package died
		}
		s.print(p.kept...)
	}
	s.print(fmt.Sprintf("%s\t(%d left, %s)\n", strings.TrimSuffix(result, "\n"), s.left, s.passed()))
}

func (s *suite) passed() time.Duration { return time.Since(s.began).Round(time.Second) }

func (s *suite) tellRunning() {
	doing := "compiling"
	if len(s.running) > 0 {
		doing = "running " + strings.Join(slices.Sorted(maps.Keys(s.running)), ", ")
	}
	s.print(fmt.Sprintf("…\t%s\t(%d left, %s)\n", doing, s.left, s.passed()))
}

func (s *suite) end() {
	s.longest("the longest tests:", s.tests, 10)
	s.longest("the longest packages:", s.packages, 3)
	if len(s.failed) > 0 {
		s.print(fmt.Sprintf("failed: %s\n", strings.Join(s.failed, " ")))
	}
}

func (s *suite) longest(title string, spans []span, most int) {
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(b.seconds, a.seconds) })
	s.print(title, "\n")
	for _, one := range spans[:min(most, len(spans))] {
		s.print(fmt.Sprintf("%8.1f s  %s\n", one.seconds, one.name))
	}
}

// add keeps a line of a test, or of the package if the test is empty.
func (p *output) add(test, line string) {
	switch {
	case strings.HasPrefix(line, "=== "): // a test begins, pauses or goes on
	case test == "":
		p.kept = append(p.kept, line)
	default:
		p.tests[test] = append(p.tests[test], line)
	}
}

func (p *output) end(test string, failed bool) {
	if failed {
		p.kept = append(p.kept, p.tests[test]...)
	}
	delete(p.tests, test)
}
