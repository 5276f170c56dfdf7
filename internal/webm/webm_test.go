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
	"testing"
	"testing/iotest"
	"time"
)

// filmed is a recording as browsers write them: a second of five frames a cluster.
type filmed struct {
	clusters int
	frame    int  // bytes of a frame
	sizes    bool // of the clusters are written, as Firefox does
	groups   bool // frames come in groups, as with alpha
	sound    bool // a track of it comes first
}

func live(id uint32) []byte { return append(appendID(nil, id), 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF) }

func (f filmed) head() []byte {
	header := appendElement(nil, 0x4282, []byte("webm"))
	b := append(appendElement(nil, idEBML, header), live(idSegment)...)
	b = appendElement(b, idInfo, appendElement(appendUint(nil, idScale, 1_000_000), 0x4D80, []byte("test")))
	track := func(n, kind uint64) []byte {
		return appendElement(nil, idEntry, appendUint(appendUint(nil, idNumber, n), idType, kind))
	}
	tracks := track(1, videoTrack)
	if f.sound {
		tracks = append(track(1, 2), track(2, videoTrack)...)
	}
	return appendElement(b, idTracks, tracks)
}

// cluster is the n-th second; its first frame is a key frame.
func (f filmed) cluster(n int) []byte {
	content := appendUint(nil, idTimestamp, uint64(n)*1000)
	for i := range 5 {
		track, flags := byte(0x81), byte(0)
		if f.sound {
			track = 0x82
		}
		if i == 0 {
			flags = 0x80
		}
		block := append([]byte{track, byte(i * 200 >> 8), byte(i * 200), flags}, bytes.Repeat([]byte{byte(n)}, f.frame)...)
		if !f.groups {
			content = appendElement(content, idSimpleBlock, block)
			continue
		}
		block[3] = 0
		group := appendElement(nil, idBlock, block)
		if i > 0 {
			group = appendUint(group, idReference, 200)
		}
		content = appendElement(content, idBlockGroup, group)
	}
	if f.sizes {
		return appendElement(nil, idCluster, content)
	}
	return append(live(idCluster), content...)
}

func (f filmed) bytes() []byte {
	b := f.head()
	for n := range f.clusters {
		b = append(b, f.cluster(n)...)
	}
	return b
}

// seekable remuxes, by small reads.
func seekable(t testing.TB, recorded []byte) (*Plan, []byte) {
	t.Helper()
	p, err := Scan(iotest.OneByteReader(bytes.NewReader(recorded)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p.Reader(iotest.HalfReader(bytes.NewReader(recorded))))
	if err != nil {
		t.Fatal(err)
	}
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

func TestARecordingGetsADurationAndCuesAndKeepsItsClusters(t *testing.T) {
	t.Parallel()
	for _, f := range []filmed{
		{clusters: 6, frame: 50},
		{clusters: 6, frame: 50, sizes: true},
		{clusters: 6, frame: 50, groups: true},
		{clusters: 6, frame: 50, sound: true},
	} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			t.Parallel()
			p, out := seekable(t, f.bytes())
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
				_, want := tree(t, filmed{frame: f.frame, sizes: true, groups: f.groups, sound: f.sound}.cluster(n))
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
				if want := map[bool]uint64{false: 1, true: 2}[f.sound]; track != want {
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
		f := filmed{clusters: 3, frame: 20, sizes: sizes}
		all, least := f.bytes(), len(f.head())
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
	f := filmed{clusters: 1, frame: 1}
	for name, b := range map[string][]byte{
		"nothing":                  nil,
		"text":                     []byte("<html><script>alert(1)</script>"),
		"a header alone":           f.head()[:20],
		"no cluster":               f.head(),
		"a segment without tracks": append(append(appendElement(nil, idEBML, nil), live(idSegment)...), f.cluster(0)...),
		"a header without an end":  append(live(idEBML), f.bytes()...),
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
	many := io.MultiReader(bytes.NewReader(filmed{}.head()), bytes.NewReader(bytes.Repeat(tiny, maxClusters+1)))
	if _, err := Scan(many); !errors.Is(err, ErrNot) {
		t.Errorf("got %v", err)
	}
}

func TestAFaultOfTheSourceIsNoEndOfTheRecording(t *testing.T) {
	t.Parallel()
	all := filmed{clusters: 3, frame: 100}.bytes()
	broken := errors.New("the bucket is gone")
	for _, n := range []int{0, 3, 60, len(all) / 2, len(all)} {
		if _, err := Scan(io.MultiReader(bytes.NewReader(all[:n]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
	p, err := Scan(bytes.NewReader(all))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(p.Reader(bytes.NewReader(all[:len(all)-1]))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that became shorter: %v", err)
	}
}

func FuzzScan(f *testing.F) {
	for _, seed := range []filmed{{clusters: 2, frame: 3}, {clusters: 2, frame: 3, sizes: true, sound: true}, {clusters: 1, frame: 2, groups: true}} {
		b := seed.bytes()
		f.Add(b)
		f.Add(b[:len(b)-4])
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
	filmed
	at   int
	rest []byte
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.at == e.clusters {
			return 0, io.EOF
		}
		e.rest = e.cluster(e.at)
		e.at++
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// BenchmarkSeekable shows the rate, and the most memory that was in use.
func BenchmarkSeekable(b *testing.B) {
	f := filmed{clusters: 32, frame: 1 << 20 / 5}
	if *gibibyte {
		f.clusters = 1024
	}
	source := func() io.Reader { return &endless{filmed: f, rest: f.head()} }
	var most uint64
	for b.Loop() {
		p, err := Scan(source())
		if err != nil {
			b.Fatal(err)
		}
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
