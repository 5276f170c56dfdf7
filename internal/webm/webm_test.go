package webm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"humanqa/internal/testing/must"
	"humanqa/internal/testing/webmtest"
)

// seekable remuxes, by small reads.
func seekable(t testing.TB, recorded []byte) (*Plan, []byte) {
	t.Helper()
	p, err := Scan(iotest.OneByteReader(bytes.NewReader(recorded)))
	must.NoError(t, err)
	out, err := io.ReadAll(p.Reader(iotest.HalfReader(bytes.NewReader(recorded))))
	must.NoError(t, err)
	if int64(len(out)) != p.Size() {
		t.Errorf("the file has %d bytes, planned were %d", len(out), p.Size())
	}
	return p, out
}

// tree reads the elements of a whole file: their ids, and their contents.
func tree(t *testing.T, b []byte) (ids []uint32, contents [][]byte) {
	t.Helper()
	n := 0
	children(b, func(e element, content []byte) {
		ids, contents = append(ids, e.id), append(contents, content)
		n += len(appendID(nil, e.id)) + 8 + len(content)
	})
	if n != len(b) {
		t.Fatalf("%d of %d bytes are elements", n, len(b))
	}
	return ids, contents
}

// Ids have one to four bytes. Whatever is no element ends the list in front of it.
func TestTheChildrenOfASmallElement(t *testing.T) {
	t.Parallel()
	void := []byte{0xEC, 0x81, 7} // an id of one byte
	for name, c := range map[string]struct {
		content []byte
		ids     []uint32
	}{
		"nothing":                      {nil, nil},
		"one element":                  {void, []uint32{0xEC}},
		"an id of four bytes":          {append([]byte{0x1A, 0x45, 0xDF, 0xA3, 0x81, 1}, void...), []uint32{0x1A45DFA3, 0xEC}},
		"an id of five bytes":          {append(append([]byte{}, void...), 0x08, 1, 1, 1, 1, 0x81, 1), []uint32{0xEC}},
		"an id that is cut off":        {append(append([]byte{}, void...), 0x1A, 0x45), []uint32{0xEC}},
		"an id without a size":         {append(append([]byte{}, void...), 0xEC), []uint32{0xEC}},
		"a size beyond the content":    {append(append([]byte{}, void...), 0xEC, 0x82, 1), []uint32{0xEC}},
		"a size that nobody knows yet": {append(append([]byte{}, void...), 0xEC, 0xFF, 1), []uint32{0xEC}},
	} {
		var ids []uint32
		children(c.content, func(e element, content []byte) {
			ids = append(ids, e.id)
			if e.size != int64(len(content)) {
				t.Errorf("%s: an element of %d bytes has %d", name, e.size, len(content))
			}
		})
		if !slices.Equal(ids, c.ids) {
			t.Errorf("%s: the ids are %x, not %x", name, ids, c.ids)
		}
	}
}

func TestARecordingGetsADurationAndCuesAndKeepsItsClusters(t *testing.T) {
	t.Parallel()
	for _, f := range []webmtest.Film{
		{Seconds: 6, Frame: 50},
		{Seconds: 6, Frame: 50, Sizes: true},
		{Seconds: 6, Frame: 50, Groups: true},
		{Seconds: 6, Frame: 50, Sound: true},
	} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			t.Parallel()
			p, out := seekable(t, f.Bytes())
			if want := 5800 * time.Millisecond; p.Duration() != want {
				t.Errorf("it lasts %s, not %s", p.Duration(), want)
			}
			ids, contents := tree(t, out)
			if len(ids) != 2 || ids[1] != idSegment {
				t.Fatalf("the file is %X", ids)
			}
			segment := contents[1]
			ids, contents = tree(t, segment)
			if want := []uint32{idInfo, idTracks, idCues, idCluster, idCluster, idCluster, idCluster, idCluster, idCluster}; fmt.Sprint(ids) != fmt.Sprint(want) {
				t.Fatalf("the segment is %X", ids)
			}
			info, known := tree(t, contents[0])
			if last := len(info) - 1; info[last] != idDuration || math.Float64frombits(binary.BigEndian.Uint64(known[last])) != 5800 {
				t.Errorf("the info is %X %x", info, known)
			}
			for n, content := range contents[3:] {
				_, want := tree(t, webmtest.Film{Frame: f.Frame, Sizes: true, Groups: f.Groups, Sound: f.Sound}.Second(n))
				if !bytes.Equal(content, want[0]) {
					t.Errorf("cluster %d is another", n)
				}
			}
			points, cues := tree(t, contents[2])
			if len(points) != 6 {
				t.Fatalf("%d cues", len(points))
			}
			for n, cue := range cues {
				_, parts := tree(t, cue)
				_, place := tree(t, parts[1])
				track, at := number(place[0]), number(place[1])
				if number(parts[0]) != uint64(n)*1000 || !bytes.HasPrefix(segment[at:], appendID(nil, idCluster)) {
					t.Errorf("cue %d is %d ms at byte %d", n, number(parts[0]), at)
				}
				if want := map[bool]uint64{false: 1, true: 2}[f.Sound]; track != want {
					t.Errorf("cue %d is of track %d", n, track)
				}
			}
		})
	}
}

// A recording may end at any byte: what is whole of it plays, and what was added
// later is in it.
func TestATailThatIsCutOffIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, sizes := range []bool{false, true} {
		f := webmtest.Film{Seconds: 3, Frame: 20, Sizes: sizes}
		all, least := f.Bytes(), len(f.Head())
		longest := time.Duration(-1)
		for n := range len(all) + 1 {
			p, err := Scan(bytes.NewReader(all[:n]))
			if errors.Is(err, ErrNot) && longest < 0 {
				continue
			}
			if err != nil {
				t.Fatalf("%d of %d bytes: %v", n, len(all), err)
			}
			if n < least || p.Duration() < longest {
				t.Fatalf("%d of %d bytes last %s, fewer lasted %s", n, len(all), p.Duration(), longest)
			}
			longest = p.Duration()
			again, out := seekable(t, all[:n])
			if check, _ := seekable(t, out); check.Duration() != again.Duration() || check.Size() != again.Size() {
				t.Fatalf("%d of %d bytes: the file is not what a scan of it says", n, len(all))
			}
		}
		if longest != 2800*time.Millisecond {
			t.Errorf("all of it lasts %s", longest)
		}
	}
}

func TestWhatIsNoRecordingIsRefused(t *testing.T) {
	t.Parallel()
	f := webmtest.Film{Seconds: 1, Frame: 1}
	for name, b := range map[string][]byte{
		"nothing":                  nil,
		"text":                     []byte("<html><script>alert(1)</script>"),
		"a header alone":           f.Head()[:20],
		"no cluster":               f.Head(),
		"a segment without tracks": append(append(appendElement(nil, idEBML, nil), webmtest.Live(idSegment)...), f.Second(0)...),
		"a header without an end":  append(webmtest.Live(idEBML), f.Bytes()...),
		"a huge header":            appendSize(appendID(nil, idEBML), 1<<40),
	} {
		if _, err := Scan(bytes.NewReader(b)); !errors.Is(err, ErrNot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Clusters cost memory each, however small they are.
func TestTheNumberOfClustersIsBounded(t *testing.T) {
	t.Parallel()
	tiny := appendElement(nil, idCluster, appendElement(nil, idTimestamp, []byte{1}))
	many := io.MultiReader(bytes.NewReader(webmtest.Film{}.Head()), bytes.NewReader(bytes.Repeat(tiny, maxClusters+1)))
	if _, err := Scan(many); !errors.Is(err, ErrNot) {
		t.Errorf("got %v", err)
	}
}

func TestAFaultOfTheSourceIsNoEndOfTheRecording(t *testing.T) {
	t.Parallel()
	all := webmtest.Film{Seconds: 3, Frame: 100}.Bytes()
	broken := errors.New("the bucket is gone")
	for _, n := range []int{0, 3, 60, len(all) / 2, len(all)} {
		if _, err := Scan(io.MultiReader(bytes.NewReader(all[:n]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	p, err := Scan(bytes.NewReader(all))
	must.NoError(t, err)
	if _, err := io.ReadAll(p.Reader(bytes.NewReader(all[:len(all)-1]))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that became shorter: %v", err)
	}
}

func FuzzScan(f *testing.F) {
	for _, seed := range []webmtest.Film{{Seconds: 2, Frame: 3}, {Seconds: 2, Frame: 3, Sizes: true, Sound: true}, {Seconds: 1, Frame: 2, Groups: true}} {
		b := seed.Bytes()
		f.Add(b)
		f.Add(b[:len(b)-4])
	}
	for name := range browsers {
		f.Add(recording(f, name)[:4000])
	}
	f.Fuzz(func(t *testing.T, recorded []byte) {
		p, err := Scan(bytes.NewReader(recorded))
		if err != nil {
			if !errors.Is(err, ErrNot) {
				t.Fatalf("an error of nobody's: %v", err)
			}
			return
		}
		out, err := io.ReadAll(p.Reader(bytes.NewReader(recorded)))
		if err != nil || int64(len(out)) != p.Size() {
			t.Fatalf("%d bytes of %d, %v", len(out), p.Size(), err)
		}
		again, err := Scan(bytes.NewReader(out))
		if err != nil || again.Size() != p.Size() || again.Duration() != p.Duration() || len(again.clusters) != len(p.clusters) {
			t.Fatalf("the file is not what a scan of it says: %v", err)
		}
	})
}

var gibibyte = flag.Bool("webm.gibibyte", false, "BenchmarkSeekable makes a recording of 1 GiB seekable, else one of 32 MiB")

// endless makes a recording while it is read.
type endless struct {
	webmtest.Film
	at   int
	rest []byte
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.at == e.Seconds {
			return 0, io.EOF
		}
		e.rest = e.Second(e.at)
		e.at++
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// BenchmarkSeekable shows the rate, and the most memory that was in use.
func BenchmarkSeekable(b *testing.B) {
	f := webmtest.Film{Seconds: 32, Frame: 1 << 20 / 5}
	if *gibibyte {
		f.Seconds = 1024
	}
	source := func() io.Reader { return &endless{Film: f, rest: f.Head()} }
	var most uint64
	for b.Loop() {
		p, err := Scan(source())
		must.NoError(b, err)
		b.SetBytes(p.Size())
		out := p.Reader(source())
		for chunk := make([]byte, 1<<20); ; {
			if _, err = io.ReadFull(out, chunk); err != nil {
				break
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		}
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-heap")
}
