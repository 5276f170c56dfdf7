package evidence

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"humanqa/domain"
	"humanqa/httpapi/wire"
	"humanqa/internal/testing/must"
)

// memoryFiles are files by their keys, on a disk with so much room.
type memoryFiles struct {
	Files
	content     map[string]string
	free, total int64
	open        int
}

type memoryFile struct {
	io.Reader
	files *memoryFiles
}

func (f memoryFile) Close() error {
	f.files.open--
	return nil
}

func (m *memoryFiles) Read(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	content, there := m.content[key]
	if !there {
		return nil, errors.New("no such file")
	}
	m.open++
	return memoryFile{strings.NewReader(content[offset:min(offset+length, int64(len(content)))]), m}, nil
}

func (m *memoryFiles) Room() (free, total int64, err error) { return m.free, m.total, nil }

func parts(sizes ...int64) (all []partRow) {
	for i, size := range sizes {
		all = append(all, partRow{Piece: Piece{ID: string(rune('a' + i)), AccountID: "acc", JobID: "job", Size: size}})
	}
	return all
}

func TestTheReaderOfPartsJoinsThemInOrder(t *testing.T) {
	t.Parallel()
	files := &memoryFiles{content: map[string]string{"acc/job/a": "first ", "acc/job/b": "second ", "acc/job/c": "third"}}
	for _, at := range []int{1, 4, 100} { // bytes of one read
		r := &partsReader{ctx: t.Context(), files: files, parts: parts(6, 7, 5)}
		var all []byte
		buffer := make([]byte, at)
		for {
			n, err := r.Read(buffer)
			all = append(all, buffer[:n]...)
			if errors.Is(err, io.EOF) {
				break
			}
			must.NoError(t, err)
		}
		r.close()
		if string(all) != "first second third" || files.open != 0 {
			t.Errorf("%d at once: %q, and %d files are open", at, all, files.open)
		}
	}
}

func TestAPartThatIsShorterThanItsRowIsNoEnd(t *testing.T) {
	t.Parallel()
	files := &memoryFiles{content: map[string]string{"acc/job/a": "first", "acc/job/b": "second"}}
	for name, rows := range map[string][]partRow{"short": parts(9, 6), "missing": parts(5, 6, 1)} {
		r := &partsReader{ctx: t.Context(), files: files, parts: rows}
		if all, err := io.ReadAll(r); err == nil {
			t.Errorf("%s: %q, and no error", name, all)
		}
		r.close()
	}
}

func TestRecordingsLeaveRoomOnTheDisk(t *testing.T) {
	t.Parallel()
	const gigabyte = 1 << 30
	for name, c := range map[string]struct {
		free, total, more int64
		refused           bool
	}{
		"no bound":                   {0, 0, 5, false},
		"a large disk, the last fit": {gigabyte + 5, 100 * gigabyte, 5, false},
		"a large disk, one too many": {gigabyte + 4, 100 * gigabyte, 5, true},
		"a small disk, the last fit": {gigabyte/20 + 5, gigabyte, 5, false},
		"a small disk, one too many": {gigabyte/20 + 4, gigabyte, 5, true},
	} {
		s := New(Deps{Files: &memoryFiles{free: c.free, total: c.total}})
		if err := s.roomFor(c.more); domain.IsKind(err, domain.KindUnavailable) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyOurLinksBecomeReferences(t *testing.T) {
	t.Parallel()
	s := New(Deps{BaseURL: "https://qa.example"})
	const id = "0198a000-0000-7000-8000-000000000001"
	for link, want := range map[string]string{
		"https://qa.example/v1/evidence/" + id:                         id,
		"https://qa.example/v1/evidence/" + id + "?signature=x#y":      id,
		"https://qa.example/v1/evidence/" + id + "#?":                  id,
		"https://QA.example/v1/evidence/" + id:                         "",
		"https://qa.example.evil.example/v1/evidence/" + id:            "",
		"http://qa.example/v1/evidence/" + id:                          "",
		"https://evil.example/?https://qa.example/v1/evidence/" + id:   "",
		"/v1/evidence/" + id:                                           "",
		"https://qa.example/v1/projects/../evidence/" + id + "?expire": "",
	} {
		if got, ours := s.ownID(link); ours != (want != "") || ours && got != want {
			t.Errorf("%q is %q, %v", link, got, ours)
		}
	}
	for stored, want := range map[string]string{Prefix + id: id, "https://qa.example" + Prefix + id: "", "": "", Prefix: ""} {
		if got := ID(stored); got != want {
			t.Errorf("the id of %q is %q", stored, got)
		}
	}
	// A link of another place is stored as it came, without a look at the database.
	link := "https://shots.example/1.png"
	owner, err := s.Refer(t.Context(), "job", wire.Object{Problems: new(wire.Problems)}, "screenshotUrl", &link)
	if err != nil || owner != "" || link != "https://shots.example/1.png" {
		t.Errorf("%q, %q, %v", owner, link, err)
	}
}
