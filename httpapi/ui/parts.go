package ui

import (
	"slices"
	"strconv"
	"time"

	"humanqa/domain/job"
)

// Segment is a part of a bar that is 100 wide.
type Segment struct{ Kind, X, Wide string }

// BarOf makes a bar of the numbers of items that passed, failed, were skipped, and are open.
func BarOf(pass, fail, skip, pending int) (bar []Segment) {
	all, x := pass+fail+skip+pending, 0.0
	for i, n := range []int{pass, fail, skip, pending} {
		if n == 0 {
			continue
		}
		wide := 100 * float64(n) / float64(all)
		kind := []string{"pass", "fail", "skip", "pending"}[i]
		bar = append(bar, Segment{kind, strconv.FormatFloat(x, 'f', 2, 64), strconv.FormatFloat(wide, 'f', 2, 64)})
		x += wide
	}
	return bar
}

// Place is the place of a moment on a line that is 100 wide and lasts as long as whole.
func Place(at, whole time.Duration) string {
	share := 0.0
	if whole > 0 {
		share = min(1, max(0, float64(at)/float64(whole)))
	}
	return strconv.FormatFloat(100*share, 'f', 2, 64)
}

// DrawnAfter orders verdicts on a line by their kinds, for slices.SortFunc: a mark is drawn
// over those before it, so failures come last.
func DrawnAfter(a, b string) int {
	order := []string{"skip", "pass", "fail"}
	return slices.Index(order, a) - slices.Index(order, b)
}

// On lists the parts of a test's target that its client has named, such as the device.
func On(t job.Target) (on []string) {
	for _, what := range []string{t.Device, t.OS, t.Browser, t.ScreenSize, t.Network} {
		if what != "" {
			on = append(on, what)
		}
	}
	return on
}

// Voice is the view of the template "voice" and of "voice-parts": the chat of a session, on
// the page of the room or beside a checklist. The script does the rest.
type Voice struct {
	Path    string // of the room
	Watches bool
	Off     bool // the client wants a voice chat, but the service has none
}
