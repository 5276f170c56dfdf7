package jobpage

import (
	"testing"
	"time"

	"humanqa/domain/job"
)

// Each moment lasts until the next; what people wrote is text, on its line.
func TestMomentsAsChapters(t *testing.T) {
	t.Parallel()
	got := string(chapters([]filmMark{
		{At: 1500 * time.Millisecond, Status: job.ItemPass, Text: "Pay"},
		{At: 61 * time.Second, Status: job.ItemFail, Text: "a --> b\n\n2\n00:00 <script>&"},
		{At: time.Hour, Text: "Marked by the checker"},
	}, job.Recording{DurationMs: 3_700_000}))
	const want = "WEBVTT\n" +
		"\n1\n00:00:01.500 --> 00:01:01.000\nPassed: Pay\n" +
		"\n2\n00:01:01.000 --> 01:00:00.000\nFailed: a --&gt; b 2 00:00 &lt;script&gt;&amp;\n" +
		"\n3\n01:00:00.000 --> 01:01:40.000\nMarked: Marked by the checker\n"
	if got != want {
		t.Errorf("got %q", got)
	}
}

// Verdicts that came behind a recording's end stand at its end, in the order in which they came.
func TestMomentsOfOneTimeStayInOrder(t *testing.T) {
	t.Parallel()
	got := string(chapters([]filmMark{
		{At: time.Second, Status: job.ItemFail, Text: "first"},
		{At: time.Second, Status: job.ItemPass, Text: "second"},
		{At: time.Second + 300*time.Microsecond, Status: job.ItemPass, Text: "third"},
	}, job.Recording{DurationMs: 1000}))
	const want = "WEBVTT\n" +
		"\n1\n00:00:01.000 --> 00:00:01.001\nFailed: first\n" +
		"\n2\n00:00:01.001 --> 00:00:01.002\nPassed: second\n" +
		"\n3\n00:00:01.002 --> 00:00:02.002\nPassed: third\n"
	if got != want {
		t.Errorf("got %q", got)
	}
}

// A recording shows what was said while it was made, and shortly after its end.
func TestWhichRecordingShowsAMoment(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	film, endless := job.Recording{StartedAt: start, DurationMs: 10_000}, job.Recording{StartedAt: start}
	for seconds, want := range map[int][3]bool{ // of it, shortly after it, of one whose end is not known
		-1: {false, false, false}, 0: {true, true, true}, 10: {true, true, true}, 69: {false, true, true}, 71: {false, false, true},
	} {
		at := start.Add(time.Duration(seconds) * time.Second)
		if got := [3]bool{shows(film, at, 0), shows(film, at, afterFilm), shows(endless, at, 0)}; got != want {
			t.Errorf("%d s: %v", seconds, got)
		}
	}
}
