package auditlog

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// The layout is for ever: whoever has kept a checkpoint holds it against leaves
// that later versions make.
func TestTheLeafNeverChanges(t *testing.T) {
	t.Parallel()
	l := Leaf{
		Index: 3, Position: domain.Position{Commit: 9, Prepare: 9}, // no part of it
		Stream: "job-é", Revision: 18446744073709551615, Type: "job.created",
		ID:      uuid.MustParse("018f2f6e-7c1a-7d3b-9a52-6f0a3b1c2d4e"),
		Created: time.Date(2026, 11, 21, 14, 5, 9, 123_456_700, time.UTC),
		Data:    sha256.Sum256([]byte(`{"a":1}`)), Meta: sha256.Sum256(nil),
	}
	const text = "15:humanqa event 1\n6:job-é\n20:18446744073709551615\n11:job.created\n36:018f2f6e-7c1a-7d3b-9a52-6f0a3b1c2d4e\n" +
		"17:17952699091234567\n64:015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862\n" +
		"64:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
	if got := string(l.Text()); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	if want := sha256.Sum256([]byte("\x00" + text)); l.Hash() != want {
		t.Errorf("hash %s, want %s", l.Hash(), hex.EncodeToString(want[:]))
	}
}

// Two leaves of which any field differs are two texts, however fields are cut.
// A verifier may have been written from the page alone.
func TestTheDocumentedLeafIsALeaf(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/proofs.md")
	must.NoError(t, err)
	l := Leaf{
		Stream: "job-1", Type: "job.created", ID: uuid.MustParse("00000000-0000-0000-0000-000000000001"),
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Data: sha256.Sum256([]byte("{}")), Meta: sha256.Sum256([]byte("{}")),
	}
	hash := l.Hash()
	if !strings.Contains(string(page), "```\n"+string(l.Text())+"```") || !strings.Contains(string(page), "`"+hex.EncodeToString(hash[:])+"`") {
		t.Errorf("the page's example is not this leaf, with the hash %x:\n%s", hash, l.Text())
	}
}

func TestEveryFieldIsBound(t *testing.T) {
	t.Parallel()
	was := Leaf{Stream: "a", Type: "b", Created: time.Unix(1, 0).UTC()}
	for field, is := range map[string]Leaf{
		"stream":   {Stream: "a1:b", Type: "b", Created: was.Created},
		"revision": {Stream: "a", Revision: 1, Type: "b", Created: was.Created},
		"type":     {Stream: "a", Type: "b\n", Created: was.Created},
		"id":       {Stream: "a", Type: "b", ID: uuid.MustParse("018f2f6e-7c1a-7d3b-9a52-6f0a3b1c2d4e"), Created: was.Created},
		"time":     {Stream: "a", Type: "b", Created: was.Created.Add(100)},
		"data":     {Stream: "a", Type: "b", Created: was.Created, Data: [32]byte{31: 1}},
		"metadata": {Stream: "a", Type: "b", Created: was.Created, Meta: [32]byte{31: 1}},
	} {
		lines := is.differences(was)
		if is.Hash() == was.Hash() || len(lines) != 1 || !strings.HasPrefix(lines[0], field+": was ") {
			t.Errorf("%s: %q", field, lines)
		}
	}
}

// The root of one streaming pass is that of RFC 6962, at every size.
func TestOnePassGivesTheRootOfTheTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var (
			f      frontier
			stored []tlog.Hash
		)
		read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			out := make([]tlog.Hash, len(indexes))
			for i, index := range indexes {
				out[i] = stored[index]
			}
			return out, nil
		})
		for n := range int64(rapid.IntRange(1, 600).Draw(t, "leaves")) {
			h := tlog.RecordHash([]byte{byte(n), byte(n >> 8)})
			more, err := tlog.StoredHashesForRecordHash(n, h, read)
			must.NoError(t, err)
			stored = append(stored, more...)
			f.add(h)
		}
		want, err := tlog.TreeHash(f.size, read)
		if err != nil || f.root() != want {
			t.Fatalf("%d leaves: root %s, want %s, %v", f.size, f.root(), want, err)
		}
	})
}
