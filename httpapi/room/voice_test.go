package room_test

import (
	"net/http"
	"strings"
	"testing"

	"humanqa/domain/person"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// Two who test and one who watches talk in their browsers: sound arrives on every
// track that is to be heard, and on no other; what happens to it changes nothing of
// the session; with the session it ends.
func TestARoomThatTalks(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	s := w.opened(account, "Caller", "Callee")
	dev := w.Joined("Dev", person.Grant{Role: person.Developer, AccountID: account})
	var tabs []*browsertest.Tab
	for n, name := range []string{"ann", "bob"} {
		g, id := w.Checks(name)
		w.claimed(id, s.Slots[n].JobID)
		tabs = append(tabs, w.Tab(g))
		tabs[n].Open(w.Origin + "/workbench/sessions/" + s.SessionID)
	}
	ann, bob := tabs[0], tabs[1]
	watcher := w.Tab(dev)
	watcher.Open(w.Origin + "/dashboard/sessions/" + s.SessionID)
	for _, tab := range append(tabs, watcher) {
		tab.Allow("/heartbeat") // one that is on its way when the session is cancelled is refused
		meter(tab)
		tab.Click("[data-join]")
	}
	hears(ann, 1)
	hears(bob, 1)
	hears(watcher, 2)
	ann.WaitText("You are in the voice chat.")
	ann.WaitText("The client")
	ann.Wait(`document.querySelectorAll('.speaks.now').length > 0`) // beeps
	for _, tab := range append(tabs, watcher) {
		tab.Screen(1280, 900, false)
		tab.Axe("voice")
		// Nobody's browser is told of another address than the service's.
		if others := browsertest.Eval[string](tab, `measured.flatMap(pc => (pc.remoteDescription?.sdp ?? '').split('\n')).filter(l => l.startsWith('a=candidate') && !l.includes(' 127.0.0.1 ')).join()`); others != "" {
			t.Errorf("an address: %s", others)
		}
	}
	ann.Shot("room-voice-light-1280")
	watcher.Screen(390, 844, true)
	watcher.AxeScreen("voice, narrow and dark")
	watcher.Shot("room-voice-watched-dark-390")

	// Who watches is heard once they are let speak, and no longer than that.
	ann.Click("[data-let=invite]")
	watcher.WaitText("Speak (you were invited)")
	watcher.Click("[data-mute]")
	hears(ann, 2)
	hears(bob, 2)
	bob.Click("[data-let=dismiss]")
	watcher.Wait(`document.querySelector('[data-mute]').hidden`)
	ann.Wait(`document.querySelectorAll('#voice audio').length === 1`)

	// A tab that is closed is gone for the others; a page of the same session takes
	// its talk along.
	bob.Open("about:blank")
	ann.Wait(`document.querySelectorAll('.voices li').length === 2 && document.querySelectorAll('#voice audio').length === 0`)
	bob.Open(w.Origin + "/workbench/sessions/" + s.SessionID)
	ann.Wait(`document.querySelectorAll('.voices li').length === 3`)

	ann.Click("[data-mute]")
	ann.WaitText("Muted")

	// Readiness goes on without it, and it ends with the session.
	ann.Click("form[action$='/ready'] button")
	ann.WaitText("You are ready")
	for _, tab := range append(tabs, watcher) { // that page of theirs has taken the talk along, too
		tab.Wait(`document.querySelectorAll('.voices li').length === 3 && document.querySelectorAll('#voice audio').length >= 1`)
	}

	// Beside the checklist, in the same tab: who speaks, mute, and verdicts.
	bob.Click("form[action$='/ready'] button")
	ann.Click("a[href^='/workbench/jobs/']")
	ann.Wait(`document.querySelectorAll('.voice-bar .voices li').length === 3 && document.querySelector('.voice-bar .voices').innerText.includes('You (Caller)')`)
	ann.Wait(`[...document.querySelectorAll('.voice-bar .voices .speaks.now')].some(name => name.innerText === 'Callee')`)
	ann.Screen(1280, 900, false)
	ann.Axe("voice beside the checklist")
	ann.Shot("bench-voice-light-1280")
	ann.Screen(390, 844, true)
	ann.AxeScreen("voice beside the checklist, narrow and dark")
	ann.Shot("bench-voice-dark-390")
	ann.Screen(320, 640, false)
	ann.Shot("bench-voice-light-320")
	if wide := browsertest.Eval[int](ann, "document.documentElement.scrollWidth"); wide > 320 {
		t.Errorf("voice beside the checklist is %d px wide", wide)
	}
	ann.Press("v")
	ann.Wait(`document.querySelector('.voice-bar [data-mute]').innerText === 'Muted'`)
	ann.Press("p")
	watcher.Wait(`document.querySelector('#slot-1 .far').innerText.startsWith('1 of')`)
	ann.Press("v")
	ann.Wait(`document.querySelector('.voice-bar [data-mute]').innerText === 'Mute'`)

	out, err := w.Commands.CancelSession(t.Context(), pagetest.Client(account), s.SessionID)
	w.Shown(out.Position, err)
	ann.Allow("404")
	ann.Allow("409")
	ann.WaitText("You no longer hold this test.")
	ann.WaitText("The session has ended, or you are no longer part of it.")
	for _, tab := range []*browsertest.Tab{bob, watcher} {
		tab.WaitText("Cancelled")
		tab.Wait(`document.getElementById('voice') === null`)
	}
}

// meter keeps the connections that the page makes, for hears.
func meter(tab *browsertest.Tab) {
	browsertest.Eval[bool](tab, `(() => {
		window.measured = []
		const real = window.RTCPeerConnection
		window.RTCPeerConnection = class extends real { constructor(...with_) { super(...with_); measured.push(this) } }
		return true
	})()`)
}

// hears waits until there is energy on so many inbound tracks.
func hears(tab *browsertest.Tab, tracks int) {
	browsertest.Eval[bool](tab, `(() => {
		clearInterval(window.listening)
		window.loud = 0
		window.listening = setInterval(async () => {
			let loud = 0
			for (const pc of measured) for (const s of (await pc.getStats()).values()) if (s.type === 'inbound-rtp' && s.totalAudioEnergy > 0 && s.packetsReceived > 20) loud++
			window.loud = loud
		}, 100)
		return true
	})()`)
	tab.Wait("window.loud === " + string(rune('0'+tracks)))
}

// A talk is asked for from our own page, in a session that has it, by who is in it.
func TestWhoMayTalk(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	s := w.opened(account, "Caller", "Callee")
	ann, id := w.Checks("ann")
	w.claimed(id, s.Slots[0].JobID)
	other, _ := w.Checks("other")
	path := "/workbench/sessions/" + s.SessionID + "/voice"
	upgrade := func(g guest, headers ...string) (int, http.Header) {
		t.Helper()
		got := w.Call(g, "GET", path, nil, append([]string{
			"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
		}, headers...)...)
		return got.Status, got.Header
	}
	for name, call := range map[string]struct {
		g      guest
		origin string
		want   int
	}{
		"nobody":                   {guest{}, w.Origin, 303},
		"a checker without a slot": {other, w.Origin, 404},
		"without an origin":        {ann, "", 403},
		"from elsewhere":           {ann, "https://evil.example", 403},
		"from a name like ours":    {ann, strings.Replace(w.Origin, "localhost", "localhost.evil.example", 1), 403},
	} {
		var headers []string
		if call.origin != "" {
			headers = []string{"Origin", call.origin}
		}
		if got, _ := upgrade(call.g, headers...); got != call.want {
			t.Errorf("%s: %d, want %d", name, got, call.want)
		}
	}
	if got := w.Call(ann, "GET", path, nil, "Origin", w.Origin); got.Status != 426 {
		t.Errorf("no upgrade: %d", got.Status)
	}
	out, err := w.Commands.CancelSession(t.Context(), pagetest.Client(account), s.SessionID)
	w.Shown(out.Position, err)
	if got, _ := upgrade(ann, "Origin", w.Origin); got != 409 {
		t.Errorf("a closed session: %d", got)
	}
}
