package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/webm"
)

// answered is how much of what it records the tab was told is there, in bytes.
const answered = `new Promise((done) => {
	const db = indexedDB.open('humanqa-reels')
	db.onsuccess = () => {
		const all = db.result.transaction('reels').objectStore('reels').getAll()
		all.onsuccess = () => { db.result.close(); done(all.result.reduce((sum, reel) => sum + reel.acked, 0)) }
	}
})`

// kept is how much of it the browser has, up to its end, in bytes.
const kept = `new Promise((done) => {
	const db = indexedDB.open('humanqa-reels')
	db.onsuccess = () => {
		const all = db.result.transaction('slices').objectStore('slices').getAll()
		all.onsuccess = () => { db.result.close(); done(all.result.reduce((end, slice) => Math.max(end, slice.at + slice.data.size), 0)) }
	}
})`

// A checker records their test while the service is killed, as by kill -9; it comes
// again, the tab is reloaded, and all that was recorded is in the report.
func TestARecordingOutlivesAKill(t *testing.T) {
	t.Parallel()
	p := newEmbedded(t)
	s := p.spawn()
	_, key := s.newAccount(100)
	id := s.call(201, "POST", "/v1/jobs", key, map[string]any{
		"url": "https://shop.example.com", "title": "Checkout", "jobType": "Custom", "description": "Buy a thing",
		"checklistItems": []any{map[string]any{"description": "It is bought"}},
	}).text("jobId")
	var link personLink
	p.cli(&link, "person", "invite", "--checker", "--name", "Ann")

	tab := browsertest.New(t)
	tab.Screen(1280, 900, false)
	for _, expected := range []string{"ERR_", "404", "409", "503", "camera is not allowed"} { // the service is away; the made-up screen asks for a camera, too
		tab.Allow(expected)
	}
	tab.Passkeys()
	tab.Open(link.Link)
	tab.Click("form[data-passkey] button")
	tab.Click("#job-" + id + " button")
	tab.WaitText("All saved")
	bench := browsertest.Eval[string](tab, "location.href")
	browsertest.Eval[bool](tab, `(() => {
		const ask = navigator.mediaDevices.getDisplayMedia.bind(navigator.mediaDevices)
		navigator.mediaDevices.getDisplayMedia = (options) => ask({...options, preferCurrentTab: true})
		return true
	})()`)
	tab.Press("r")
	eventually.True(t, "a part is there", func() bool { return browsertest.Eval[float64](tab, answered) > 0 })
	s.kill()
	there := browsertest.Eval[float64](tab, answered)
	var recorded float64
	eventually.True(t, "it is recorded on", func() bool { recorded = browsertest.Eval[float64](tab, kept); return recorded > there })
	tab.WaitText("are kept in this browser")

	s = p.start()
	tab.Open(bench)
	tab.WaitText("The recording is saved")
	tab.Press("p")
	tab.WaitText("Nothing left")
	tab.WaitText("All saved")
	tab.PressCtrl(browsertest.Enter)
	tab.Wait(`document.activeElement.id === 'summary'`)
	tab.PressCtrl(browsertest.Enter)
	tab.WaitText("Your report is with the client")

	var report struct {
		RecordingURL string
		Recordings   []struct{ DurationMs float64 }
	}
	eventually.True(t, "the report has the recording", func() bool {
		r := s.call(200, "GET", "/v1/jobs/"+id+"/report", key, nil)
		return json.Unmarshal(r.body, &report) == nil && len(report.Recordings) == 1
	})
	film := s.call(200, "GET", strings.TrimPrefix(report.RecordingURL, p.url("")), "", nil).body
	if plan, err := webm.Scan(bytes.NewReader(film)); err != nil || float64(len(film)) < recorded || report.Recordings[0].DurationMs == 0 {
		t.Errorf("the film has %d bytes, %f were recorded, %f of them before the kill: %v, %v", len(film), recorded, there, plan, err)
	}
	if stdout, stderr, err := p.tryCLI("fsck"); err != nil {
		t.Errorf("fsck: %v\n%s%s", err, stdout, stderr)
	}
}
