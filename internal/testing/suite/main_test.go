package main

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// after gives what show prints for these lines of go test -json, each a pause after the
// last.
func after(t *testing.T, pause time.Duration, total int, events ...string) (printed string) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		in, lines := io.Pipe()
		go func() {
			for _, one := range events {
				time.Sleep(pause)
				_, _ = io.WriteString(lines, one+"\n")
			}
			_ = lines.Close()
		}()
		var out strings.Builder
		show(in, &out, total)
		printed = out.String()
	})
	return printed
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != strings.TrimPrefix(want, "\n") {
		t.Errorf("printed:\n%s\nwant:%s", got, want)
	}
}

func TestAPackageGetsItsLineAsSoonAsItIsDone(t *testing.T) {
	t.Parallel()
	equal(t, after(t, time.Second, 2,
		`{"Action":"start","Package":"m/long"}`,
		`{"Action":"start","Package":"m/short"}`,
		`{"Action":"output","Package":"m/short","Test":"TestA","Output":"=== RUN   TestA\n"}`,
		`{"Action":"output","Package":"m/short","Test":"TestA","Output":"    a_test.go:4: a log that passes\n"}`,
		`{"Action":"pass","Package":"m/short","Test":"TestA/part","Elapsed":0.2}`,
		`{"Action":"pass","Package":"m/short","Test":"TestA","Elapsed":0.25}`,
		`{"Action":"output","Package":"m/short","Output":"PASS\n"}`,
		`{"Action":"output","Package":"m/short","Output":"ok  \tm/short\t0.300s\n"}`,
		`{"Action":"pass","Package":"m/short","Elapsed":0.3}`,
		`{"Action":"pass","Package":"m/long","Test":"TestB","Elapsed":9.5}`,
		`{"Action":"output","Package":"m/long","Output":"ok  \tm/long\t9.600s\n"}`,
		`{"Action":"pass","Package":"m/long","Elapsed":9.6}`,
	), `
ok  	m/short	0.300s	(1 left, 9s)
ok  	m/long	9.600s	(0 left, 12s)
the longest tests:
     9.5 s  m/long TestB
     0.2 s  m/short TestA
the longest packages:
     9.6 s  m/long
     0.3 s  m/short
`)
}

// A test that had not ended when its process died says why.
func TestAFailedPackageShowsAllButTheOutputOfTestsThatPassed(t *testing.T) {
	t.Parallel()
	equal(t, after(t, 0, 1,
		`{"Action":"start","Package":"m/a"}`,
		`{"Action":"output","Package":"m/a","Output":"of the package\n"}`,
		`{"Action":"output","Package":"m/a","Test":"TestGood","Output":"of a test that passes\n"}`,
		`{"Action":"output","Package":"m/a","Test":"TestBad","Output":"of a test that fails\n"}`,
		`{"Action":"pass","Package":"m/a","Test":"TestGood","Elapsed":1}`,
		`{"Action":"output","Package":"m/a","Test":"TestBad","Output":"--- FAIL: TestBad (2.00s)\n"}`,
		`{"Action":"fail","Package":"m/a","Test":"TestBad","Elapsed":2}`,
		`{"Action":"output","Package":"m/a","Test":"TestCut","Output":"panic: of a test that never ends\n"}`,
		`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a\t3.000s\n"}`,
		`{"Action":"fail","Package":"m/a","Elapsed":3}`,
	), `
of the package
of a test that fails
--- FAIL: TestBad (2.00s)
panic: of a test that never ends
FAIL	m/a	3.000s	(0 left, 0s)
the longest tests:
     2.0 s  m/a TestBad
     1.0 s  m/a TestGood
the longest packages:
     3.0 s  m/a
failed: m/a
`)
}

func TestAPackageThatDoesNotCompileShowsWhy(t *testing.T) {
	t.Parallel()
	equal(t, after(t, 0, 2,
		`go: a word of go itself`,
		`{"ImportPath":"m/a [m/a.test]","Action":"build-output","Output":"# m/a\n"}`,
		`{"ImportPath":"m/a [m/a.test]","Action":"build-output","Output":"a.go:2:23: undefined: x\n"}`,
		`{"ImportPath":"m/a [m/a.test]","Action":"build-fail"}`,
		`{"Action":"start","Package":"m/a"}`,
		`{"Action":"output","Package":"m/a","Output":"FAIL\tm/a [build failed]\n"}`,
		`{"Action":"fail","Package":"m/a","Elapsed":0,"FailedBuild":"m/a [m/a.test]"}`,
	), `
go: a word of go itself
# m/a
a.go:2:23: undefined: x
FAIL	m/a [build failed]	(1 left, 0s)
the longest tests:
the longest packages:
     0.0 s  m/a
failed: m/a
`)
}

func TestAfterAMinuteWithoutAResultALineNamesTheRunningPackages(t *testing.T) {
	t.Parallel()
	equal(t, after(t, 50*time.Second, 1,
		`{"Action":"build-output","ImportPath":"m/b","Output":"a warning"}`,
		`{"Action":"start","Package":"m/a"}`,
		`{"Action":"start","Package":"m/b"}`,
		`{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t9.000s\n"}`,
		`{"Action":"pass","Package":"m/a","Elapsed":9}`,
	), `
…	compiling	(1 left, 1m0s)
…	running m/a	(1 left, 2m0s)
…	running m/a, m/b	(1 left, 3m0s)
…	running m/a, m/b	(1 left, 4m0s)
ok  	m/a	9.000s	(0 left, 4m10s)
the longest tests:
the longest packages:
     9.0 s  m/a
`)
}
