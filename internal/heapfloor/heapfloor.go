// Package heapfloor spares a small heap most of its garbage collections. Go collects when
// the heap has doubled since the last time, so a service that keeps little collects all the
// time: each time wakes every processor, and holds up who allocates. Below a floor it is
// not the doubling that counts, but the floor.
package heapfloor

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// doubled is Go's own measure, as of GOGC.
	doubled = 100
	// least is what Go takes for the smallest heap to double.
	least = 4 << 20
)

// Keep has the heap grow to floor bytes before it is collected, for as long as the process
// lives; a larger one is collected when it has doubled. Whoever sets GOGC or GOMEMLIMIT
// decides instead.
func Keep(floor uint64) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	k := &keeper{floor: floor, percent: doubled, sizes: []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"},
	}}
	k.collected(struct{}{})
}

type keeper struct {
	floor   uint64
	percent int
	sizes   []metrics.Sample
}

// collected follows each collection, and sets what the next one waits for: Go adds a part
// of what it has looked at to what lives.
func (k *keeper) collected(struct{}) {
	metrics.Read(k.sizes)
	live := k.sizes[0].Value.Uint64()
	seen := max(live+k.sizes[1].Value.Uint64()+k.sizes[2].Value.Uint64(), least)
	percent := doubled
	if live+seen < k.floor {
		percent = int(doubled * (k.floor - live) / seen) //nolint:gosec // of some megabytes
	}
	if off := percent - k.percent; off < -k.percent/8 || off > k.percent/8 { // it stops the world
		k.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(new(*keeper), k.collected, struct{}{})
}
