package heapfloor_test

import (
	"bytes"
	"runtime"
	"runtime/metrics"
	"testing"

	"humanqa/internal/eventually"
	"humanqa/internal/heapfloor"
)

var kept []byte

func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumGC
}

func percent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// The collector is the process's, so the parts follow each other.
func TestASmallHeapIsCollectedAtTheFloor(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	const floor = 128 << 20
	heapfloor.Keep(floor)
	before := collections()
	for range 900 {
		kept = bytes.Repeat([]byte{1}, 1<<20) // no faster than memory is written
	}
	if n := collections() - before; n == 0 || n > 15 {
		t.Errorf("900 MB were collected %d times, of a floor of 128", n)
	}
	t.Run("and a large one when it has doubled", func(t *testing.T) {
		kept = make([]byte, floor)
		eventually.True(t, "it is collected when it has doubled", func() bool {
			runtime.GC()
			return percent() == 100
		})
	})
	t.Run("until it is small again", func(t *testing.T) {
		kept = nil
		eventually.True(t, "it is collected at the floor", func() bool {
			runtime.GC()
			return percent() > 1000
		})
	})
}
