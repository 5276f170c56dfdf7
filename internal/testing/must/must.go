// Package must ends a test that cannot go on.
package must

// TB is what a test, a benchmark and a property's run have in common.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test at the caller's line with an error that nobody expects.
func NoError(t TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
