// Package must ends a test that cannot go on.
package must

// TB has the methods that a test, a benchmark and a property's run have in common.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends the test at the caller's line with an error that is not expected.
func NoError(t TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
