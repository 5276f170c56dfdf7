package room_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/job"
	"humanqa/domain/person"
	"humanqa/domain/session"
	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/pagetest"
)

// What the checkers recorded plays on one timeline, for the client's people.
func TestASessionIsReplayed(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := w.Account("Acme", 500, false)
	dev := w.Joined("Dev", person.Grant{Role: person.Viewer, AccountID: account})
	stranger := w.Joined("Eve", person.Grant{Role: person.Owner, AccountID: w.Account("Other", 0, false)})
	s := w.opened(account, "Caller", "Callee")
	tab := w.Tab(dev)
	tab.Open(w.Origin + "/dashboard/sessions/" + s.SessionID)
	film, err := base64.StdEncoding.DecodeString(browsertest.Eval[string](tab, `(async () => {
		const canvas = document.createElement('canvas'); canvas.width = 160; canvas.height = 100
		const at = canvas.getContext('2d')
		let n = 0
		const paint = setInterval(() => { at.fillStyle = 'hsl(' + 9 * n++ + ' 60% 50%)'; at.fillRect(0, 0, 160, 100) }, 40)
		const recorder = new MediaRecorder(canvas.captureStream(25), {mimeType: 'video/webm;codecs=vp8'})
		const parts = []
		recorder.ondataavailable = e => parts.push(e.data)
		const done = new Promise(go => recorder.onstop = go)
		recorder.start()
		await new Promise(go => setTimeout(go, 1500))
		recorder.stop(); await done; clearInterval(paint)
		const bytes = new Uint8Array(await new Blob(parts).arrayBuffer())
		return btoa(Array.from(bytes, b => String.fromCharCode(b)).join(''))
	})()`))
	w.Must(err)

	var seats []sits
	var keys []string
	for n := range 2 {
		c, err := w.Commands.CreateChecker(t.Context(), pagetest.Operator(), fmt.Sprint("checker ", n), nil)
		w.Shown(c.Position, err)
		seats, keys = append(seats, w.claimed(c.CheckerID, s.Slots[n].JobID)), append(keys, c.Token)
		seats[n].ready()
	}
	shown, err := w.Reads.Sessions.Session(t.Context(), account, s.SessionID)
	w.Must(err)
	var films []string
	for n, seat := range seats {
		id := w.filmed(seat, keys[n], film)
		films = append(films, id)
		at, err := w.Commands.AttachRecording(t.Context(), command.Cause{CommandID: domain.NewCommandID(), Actor: "checker:" + seat.id, AccountID: account}, seat.JobID, job.Recording{
			ID: id, Token: seat.Token, URL: "/v1/evidence/" + id, ContentType: "video/webm", Size: int64(len(film)),
			StartedAt: shown.StartedAt.Add(time.Duration(n-2) * 500 * time.Millisecond), DurationMs: 1500,
		})
		w.Shown(at, err)
		seat.says(0, job.ItemFail, "Silence.")
	}
	for _, seat := range seats {
		seat.completes(job.ItemPass)
	}
	w.settled(account, s.SessionID, session.StatusCompleted)

	tab.Open(w.Origin + "/dashboard/sessions/" + s.SessionID)
	tab.Wait(`[...document.querySelectorAll('video[data-from]')].filter(v => v.readyState >= 2).length === 2`)
	tab.Screen(1280, 900, false)
	tab.Axe("replay")
	tab.Shot("room-replay-light-1280")
	tab.Screen(390, 844, true)
	tab.AxeScreen("replay, narrow and dark")
	tab.Shot("room-replay-dark-390")
	// A moment leads every film there, by its own start.
	browsertest.Eval[bool](tab, `(() => { const s = document.querySelector('#replay input'); s.value = '0.1'; s.dispatchEvent(new Event('input', {bubbles: true})); return true })()`)
	tab.Wait(`[...document.querySelectorAll('video[data-from]')].map(v => v.currentTime.toFixed(1)).join() === '1.1,0.6'`)
	tab.Click("#replay button")
	// All play on to the end of the longest and of the session, which a busy machine makes
	// longer, however late the page comes to it.
	tab.Wait(`[...document.querySelectorAll('video[data-from]')].every(v => v.paused && v.currentTime > v.duration - 0.35) && (end =>
		end >= 1 && document.querySelector('#replay output').textContent === new Date(1000 * end).toISOString().slice(14, 19)
	)(Math.floor(document.querySelector('#replay').dataset.seconds))`)
	for who, want := range map[string]int{"dev": 303, "stranger": 404} {
		g := map[string]guest{"dev": dev, "stranger": stranger}[who]
		if got := w.Call(g, "GET", "/dashboard/sessions/"+s.SessionID+"/films/"+films[0], nil); got.Status != want {
			t.Errorf("a recording for %s: %d", who, got.Status)
		}
	}
	if got := w.Call(dev, "GET", "/dashboard/sessions/"+s.SessionID+"/films/"+domain.DeriveID(domain.NewCommandID(), "none").String(), nil); got.Status != 404 {
		t.Errorf("a recording of nobody: %d", got.Status)
	}
}

// filmed uploads a recording as a checker's client does, and gives its id.
func (w world) filmed(s sits, key string, content []byte) string {
	w.T.Helper()
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	part, err := m.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="file"; filename="a.webm"`}, "Content-Type": {"video/webm"}})
	w.Must(err)
	_, err = part.Write(content)
	w.Must(err)
	w.Must(m.Close())
	got := w.Send(guest{}, "POST", "/v1/checker/jobs/"+s.JobID+"/evidence", &b,
		"Authorization", "Bearer "+key, "X-Claim-Token", fmt.Sprint(s.Token), "Content-Type", m.FormDataContentType())
	if got.Status != 201 {
		w.T.Fatalf("the upload: %d %s", got.Status, got.Body)
	}
	const before = "/v1/evidence/"
	at := bytes.Index([]byte(got.Body), []byte(before)) + len(before)
	return got.Body[at : at+36]
}
