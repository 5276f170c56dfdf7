package auditlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
)

// Leaf holds the bound facts of an event, and its position when the tree took it. The
// position is for finding the event, and no part of the hash.
type Leaf struct {
	Index    int64
	Position domain.Position

	Stream   string
	Revision uint64
	Type     string
	ID       uuid.UUID
	Created  time.Time
	Data     [sha256.Size]byte
	Meta     [sha256.Size]byte
	Binary   bool // the data are kept as octets, not as JSON
}

func leafOf(r domain.Recorded) Leaf {
	return Leaf{
		Position: r.Position, Stream: r.Stream, Revision: r.Revision, Type: r.Type, ID: r.ID,
		Created: r.Stored.Created, Data: r.Stored.Data, Meta: r.Stored.Meta,
		Binary: r.Stored.Binary,
	}
}

// leafVersion starts the leaf of an event whose data are JSON, as in all events of the
// service. binaryVersion starts the leaf of any other event.
const (
	leafVersion   = "humanqa event 1"
	binaryVersion = "humanqa event 2"
	binaryContent = "application/octet-stream"
)

// ticks is a time as the log's protocol carries it: 100 ns since 1970.
func ticks(t time.Time) int64 { return t.UnixNano() / 100 }

func fromTicks(n int64) time.Time { return time.Unix(0, n*100).UTC() }

// Text is the leaf's bytes: each field as its length in bytes, a colon, the bytes, and
// a line feed. So no field can be read as the end of another.
func (l Leaf) Text() []byte {
	out := make([]byte, 0, 384)
	var word [2 * sha256.Size]byte // for one field at a time
	if l.Binary {
		out = appendField(appendField(out, binaryVersion), binaryContent)
	} else {
		out = appendField(out, leafVersion)
	}
	out = appendField(out, l.Stream)
	out = appendField(out, strconv.AppendUint(word[:0], l.Revision, 10))
	out = appendField(out, l.Type)
	out = appendField(out, l.ID.String())
	out = appendField(out, strconv.AppendInt(word[:0], ticks(l.Created), 10))
	out = appendField(out, hex.AppendEncode(word[:0], l.Data[:]))
	return appendField(out, hex.AppendEncode(word[:0], l.Meta[:]))
}

func appendField[T string | []byte](out []byte, field T) []byte {
	out = strconv.AppendInt(out, int64(len(field)), 10)
	return append(append(append(out, ':'), field...), '\n')
}

// Hash is the leaf's hash in the tree.
func (l Leaf) Hash() tlog.Hash { return tlog.RecordHash(l.Text()) }

// differences names the fields in which l differs from was, the leaf that the tree holds.
func (l Leaf) differences(was Leaf) []string {
	var out []string
	add := func(field string, is, was any) {
		if is != was {
			out = append(out, fmt.Sprintf("%s: was %v, is %v", field, was, is))
		}
	}
	add("stream", l.Stream, was.Stream)
	add("revision", l.Revision, was.Revision)
	add("type", l.Type, was.Type)
	add("id", l.ID, was.ID)
	add("time", l.Created.Format(time.RFC3339Nano), was.Created.Format(time.RFC3339Nano))
	add("data", digest(l.Data), digest(was.Data))
	add("metadata", digest(l.Meta), digest(was.Meta))
	add("content", l.content(), was.content())
	return out
}

func (l Leaf) content() string {
	if l.Binary {
		return "octets"
	}
	return "JSON"
}

// digest is a hash; only its beginning is shown.
type digest [sha256.Size]byte

func (d digest) String() string { return "SHA-256 " + hex.EncodeToString(d[:8]) + "…" }

func (l Leaf) String() string {
	return fmt.Sprintf("%s (%s, revision %d of %s, position %s)", l.ID, l.Type, l.Revision, l.Stream, l.Position)
}

// frontier is the right edge of a tree that grows leaf by leaf: the roots of its
// full subtrees, from the largest. It takes a few words, however long the log is.
type frontier struct {
	size  int64
	roots []tlog.Hash
}

func (f *frontier) add(h tlog.Hash) {
	f.roots = append(f.roots, h)
	for n := f.size; n&1 == 1; n >>= 1 {
		last := len(f.roots) - 1
		f.roots[last-1] = tlog.NodeHash(f.roots[last-1], f.roots[last])
		f.roots = f.roots[:last]
	}
	f.size++
}

// root is the hash of the whole tree.
func (f *frontier) root() tlog.Hash {
	if f.size == 0 {
		return sha256.Sum256(nil) // RFC 6962, section 2.1
	}
	roots := slices.Clone(f.roots)
	for last := len(roots) - 1; last > 0; last-- {
		roots[last-1] = tlog.NodeHash(roots[last-1], roots[last])
		roots = roots[:last]
	}
	return roots[0]
}
