package webm

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/must"
)

func TestMain(m *testing.M) { os.Exit(browsertest.Main(m.Run)) }

// recorded are what browsers wrote: ten seconds of a canvas of 64 x 48 and of a
// tone, in slices of a second as the workbench asks for them
// (httpapi/ui/assets/src/film.ts), but with 8,000 bits a second for what is seen and
// 6,000 for what is heard. Five times a second a square on white moves, and turns by
// three degrees of hue from the red it begins with: what is seen says when it was.
//
// chromium.webm: Chromium 156, VP9 and Opus, made with --headless=new. A canvas
// may be seen through, so its frames are groups of a block and its alpha, with a
// reference unless they are key frames; sound is in simple blocks. A key frame stands
// behind sound in the middle of a cluster.
//
// firefox.webm: Firefox 153 ESR, VP8 and Opus, made with --headless. It has a seek head
// of no size, a duration of 0, a codec delay, simple blocks only, and a key frame when
// it pleases, at which a cluster begins: the interval that is asked for is nothing to it.
//
//go:embed testdata/*.webm
var recorded embed.FS

// browsers are the recordings, and when their last block begins.
var browsers = map[string]time.Duration{
	"chromium.webm": 9924 * time.Millisecond,
	"firefox.webm":  9819 * time.Millisecond,
}

func recording(t testing.TB, name string) []byte {
	t.Helper()
	b, err := recorded.ReadFile("testdata/" + name)
	must.NoError(t, err)
	return b
}

func TestWhatBrowsersRecordBecomesSeekable(t *testing.T) {
	t.Parallel()
	for name, lasts := range browsers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, out := seekable(t, recording(t, name))
			if p.Duration() != lasts {
				t.Errorf("it lasts %s, not %s", p.Duration(), lasts)
			}
			_, contents := tree(t, out)
			segment := contents[1]
			ids, contents := tree(t, segment)
			if len(ids) != 3+11 || ids[0] != idInfo || ids[1] != idTracks || ids[2] != idCues {
				t.Fatalf("the segment is %X", ids)
			}
			durations := 0
			children(contents[0], func(e element, content []byte) {
				if e.id == idDuration {
					durations++
					if said := math.Float64frombits(number(content)); said != float64(lasts.Milliseconds()) {
						t.Errorf("it says that it lasts %f ms", said)
					}
				}
			})
			if durations != 1 {
				t.Errorf("it says %d times how long it lasts", durations)
			}
			// One key frame at the beginning, and one in the middle.
			_, cues := tree(t, contents[2])
			if len(cues) != 2 {
				t.Fatalf("%d cues", len(cues))
			}
			for _, cue := range cues {
				_, parts := tree(t, cue)
				_, place := tree(t, parts[1])
				cluster := segment[number(place[1]):]
				if number(place[0]) != 1 || !bytes.HasPrefix(cluster, appendID(nil, idCluster)) {
					t.Fatalf("a cue is at %X of track %d", cluster[:4], number(place[0]))
				}
				_, blocks := tree(t, cluster[:clusterHead+binarySize(cluster)])
				if began := number(blocks[0][2:][:int(blocks[0][1]&0x7F)]); began > number(parts[0]) || number(parts[0]) > began+1000 {
					t.Errorf("the cue of %d ms is at a cluster of %d ms", number(parts[0]), began)
				}
			}
		})
	}
}

// binarySize reads the size in a cluster's head as it is written here.
func binarySize(cluster []byte) int { return int(number(cluster[5:clusterHead])) }

func TestARecordingOfABrowserMayEndAtAnyByte(t *testing.T) {
	t.Parallel()
	for name, lasts := range browsers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := recording(t, name)
			longest := time.Duration(-1)
			for n := 0; n <= len(all); n += 7 {
				p, err := Scan(bytes.NewReader(all[:n]))
				if errors.Is(err, ErrNot) && longest < 0 && n < 1000 {
					continue
				}
				if err != nil {
					t.Fatalf("%d of %d bytes: %v", n, len(all), err)
				}
				if p.Duration() < longest {
					t.Fatalf("%d of %d bytes last %s, fewer lasted %s", n, len(all), p.Duration(), longest)
				}
				longest = p.Duration()
			}
			if longest > lasts || longest < lasts-time.Second {
				t.Errorf("nearly all of it lasts %s", longest)
			}
		})
	}
}

// A real browser plays either, whole and with a tail that is cut off: it knows how
// long it lasts, and what it shows where it is sought is what was seen then.
func TestABrowserSeeksWhatBrowsersRecorded(t *testing.T) {
	t.Parallel()
	type film struct {
		bytes []byte
		lasts float64 // seconds
	}
	films := map[string]film{}
	for name := range browsers {
		all := recording(t, name)
		for what, b := range map[string][]byte{"": all, "cut-": all[:len(all)*4/5]} {
			p, out := seekable(t, b)
			films["/"+what+name] = film{out, p.Duration().Seconds()}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := films[r.URL.Path]; ok {
			w.Header().Set("Content-Type", "video/webm")
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.bytes))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Films</title>`)
	}))
	t.Cleanup(server.Close)
	tab := browsertest.New(t)
	tab.Open(server.URL)
	for name, f := range films {
		type played struct {
			Duration float64
			Seen     []float64 // when what is shown was recorded, after each seek; seconds
		}
		seeks := []float64{7, 1, 5.5, 3}
		got := browsertest.Eval[played](tab, fmt.Sprintf(`(async () => {
			const video = document.createElement('video'), wide = 64, high = 48
			await new Promise((done, fail) => { video.onloadeddata = done; video.onerror = () => fail(video.error.message); video.src = %q })
			const seen = []
			for (const at of %s) {
				await new Promise((done) => { video.onseeked = done; video.currentTime = at })
				let second = NaN
				for (let look = 0; look < 50; look++) { // the frame shows some time after it is there
					const to = new OffscreenCanvas(wide, high).getContext('2d')
					to.drawImage(video, 0, 0, wide, high)
					const dots = to.getImageData(0, 0, wide, high).data
					let best = 0
					for (let n = 0; n < dots.length; n += 4) {
						const [r, g, b] = dots.subarray(n, n + 3), top = Math.max(r, g, b), range = top - Math.min(r, g, b)
						if (range <= best) continue
						best = range
						second = 60 * (top === r ? (g - b) / range : top === g ? 2 + (b - r) / range : 4 + (r - g) / range) / 15
					}
					if (Math.abs(second - at) < 1) break
					await new Promise((later) => setTimeout(later, 100))
				}
				seen.push(second)
			}
			return {Duration: video.duration, Seen: seen}
		})()`, name, strings.ReplaceAll(fmt.Sprint(seeks), " ", ",")))
		if math.Abs(got.Duration-f.lasts) > 0.001 {
			t.Errorf("%s lasts %f s for the browser, %f s for us", name, got.Duration, f.lasts)
		}
		for n, at := range seeks {
			if math.Abs(got.Seen[n]-at) >= 1 {
				t.Errorf("%s: where %f s is sought, %f s is seen", name, at, got.Seen[n])
			}
		}
	}
}
