package eventually_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"humanqa/internal/testing/eventually"
)

// failing is a test that notes how it failed.
type failing struct {
	testing.TB
	said string
}

func (*failing) Helper() {}

func (f *failing) Fatalf(format string, args ...any) { f.said = fmt.Sprintf(format, args...); panic(f) }

func TestAWaitEndsWithItsConditionOrWithTheTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		eventually.True(t, "two seconds have passed", func() bool { return time.Since(start) >= 2*time.Second })
		if late := time.Since(start) - 2*time.Second; late > 50*time.Millisecond {
			t.Errorf("noticed %s late", late)
		}

		start = time.Now()
		test := &failing{TB: t}
		func() {
			defer func() { _ = recover() }()
			eventually.Within(test, 3*time.Second, func() error { return errors.New("still not") })
		}()
		if took := time.Since(start); test.said != "not after 3s: still not" || took != 3*time.Second {
			t.Errorf("said %q after %s", test.said, took)
		}
	})
}
