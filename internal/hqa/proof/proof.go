// Package proof verifies an exported log, or the proof of one event, offline: against
// checkpoints that were kept elsewhere, by the log's public key. It shares no code with
// the service that wrote them, and needs none: RFC 6962's hashes, Ed25519 and the standard
// library.
package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type hash = [sha256.Size]byte

func nodeHash(l, r hash) hash { return sha256.Sum256(slices.Concat([]byte{1}, l[:], r[:])) }

// tree is the right edge of a tree: the roots of its full subtrees.
type tree struct {
	size  int64
	roots []hash
}

func (t *tree) add(h hash) {
	for n := t.size; n&1 == 1; n >>= 1 {
		h = nodeHash(t.roots[len(t.roots)-1], h)
		t.roots = t.roots[:len(t.roots)-1]
	}
	t.roots, t.size = append(t.roots, h), t.size+1
}

func (t *tree) root() hash {
	h := t.roots[len(t.roots)-1]
	for i := len(t.roots) - 2; i >= 0; i-- {
		h = nodeHash(t.roots[i], h)
	}
	return h
}

// Event is one of an export, or of a proof.
type Event struct {
	Index              int64
	Position, Stream   string
	Revision           uint64
	Type, ID, Created  string
	DataHash, MetaHash string
	ContentType        string // where the data are no JSON
	Data, Meta         *string
	// Texts are those that Data has sealed, behind their salt, a line each (docs, "Audit").
	Texts *string
	Leaf  string
}

// Marks stand in an event's data in the place of its texts, in their order.
var marks = regexp.MustCompile(`"\\u005bsealed\]"|"\[sealed\\u005d"`)

var textsSum = regexp.MustCompile(`^\{"texts":"[^"]*","textsSum":"([^"]*)",`)

// Opened gives the event's data with its texts; false where the texts do not have the sum
// that the data hold.
func (e Event) Opened() (data string, ok bool) {
	if e.Data == nil {
		return "", false
	}
	head := textsSum.FindStringSubmatch(*e.Data)
	if head == nil {
		return *e.Data, true
	}
	if e.Texts == nil {
		return "", false
	}
	sum := sha256.Sum256([]byte(*e.Texts))
	texts := strings.Split(*e.Texts, "\n")[1:]
	if base64.RawURLEncoding.EncodeToString(sum[:]) != head[1] {
		return "", false
	}
	next := 0
	data = marks.ReplaceAllStringFunc("{"+(*e.Data)[len(head[0]):], func(mark string) string {
		if next == len(texts) {
			return mark
		}
		next++
		return texts[next-1]
	})
	return data, next == len(texts)
}

func (e Event) String() string {
	return fmt.Sprintf("event %s (%s, revision %d of %s, position %s)", e.ID, e.Type, e.Revision, e.Stream, e.Position)
}

// hash is the event's leaf: each field as its length, a colon, itself, a line
// feed.
func (e Event) hash() hash {
	text := bytes.NewBuffer([]byte{0}) // RFC 6962, section 2.1: a leaf; 1 is a node
	head := []string{"humanqa event 1"}
	if e.ContentType != "" {
		head = []string{"humanqa event 2", e.ContentType}
	}
	for _, field := range append(head,
		e.Stream, strconv.FormatUint(e.Revision, 10), e.Type, e.ID, e.Created, e.DataHash, e.MetaHash,
	) {
		fmt.Fprintf(text, "%d:%s\n", len(field), field)
	}
	return sha256.Sum256(text.Bytes())
}

// shows says whether data that is shown has that hash.
func shows(shown *string, sum string) bool {
	if shown != nil { // else a secret is sealed in it
		is := sha256.Sum256([]byte(*shown))
		return hex.EncodeToString(is[:]) == sum
	}
	return true
}

// key is a verifier of signed notes: name+hash+base64(1, Ed25519 key).
type key struct {
	name   string
	hash   []byte
	public ed25519.PublicKey
}

func parseKey(text string) (key, error) {
	parts := append(strings.SplitN(strings.TrimSpace(text), "+", 3), "", "", "")
	raw, err := base64.StdEncoding.DecodeString(parts[2])
	sum := sha256.Sum256(slices.Concat([]byte(parts[0]+"\n"), raw))
	if err != nil || len(raw) != 1+ed25519.PublicKeySize || raw[0] != 1 || hex.EncodeToString(sum[:4]) != parts[1] {
		return key{}, errors.New("the key is not what humanqa audit key prints")
	}
	return key{parts[0], sum[:4], raw[1:]}, nil
}

type checkpoint struct {
	size  int64
	root  hash
	lines string // position and time
}

func (k key) open(note string) (c checkpoint, err error) {
	text, signatures, _ := strings.Cut(note, "\n\n")
	text += "\n"
	signed := false
	for line := range strings.SplitSeq(signatures, "\n") {
		encoded, ours := strings.CutPrefix(line, "— "+k.name+" ")
		raw, err := base64.StdEncoding.DecodeString(encoded)
		if ours && err == nil && len(raw) == 4+ed25519.SignatureSize && bytes.Equal(raw[:4], k.hash) {
			signed = signed || ed25519.Verify(k.public, []byte(text), raw[4:])
		}
	}
	lines := strings.SplitN(text, "\n", 4)
	if !signed || len(lines) < 4 || lines[0] != k.name {
		return c, fmt.Errorf("it is no checkpoint that %s has signed", k.name)
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	size, sizeErr := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || sizeErr != nil || len(root) != sha256.Size || size < 1 {
		return c, errors.New("it has no size and root")
	}
	return checkpoint{size, hash(root), strings.ReplaceAll(strings.TrimSpace(lines[3]), "\n", ", ")}, nil
}

type verifier struct {
	key  key
	kept []checkpoint // by size
	log  tree
	good checkpoint // the newest that holds
	held int
	out  io.Writer
	bad  int

	proved *Event
}

// fail counts a fault, and prints the first ten.
func (v *verifier) fail(format string, args ...any) {
	if v.bad++; v.bad <= 10 {
		_, _ = fmt.Fprintf(v.out, format+"\n", args...)
	}
}

func (v *verifier) hold(c checkpoint) {
	if v.held++; v.log.root() == c.root {
		v.good = c
		return
	}
	v.fail("the first %d events are not those that were signed (%s); the first %d are", c.size, c.lines, v.good.size)
}

// leaf is the event's hash. It checks the event's data against their hashes.
func (v *verifier) leaf(e Event) hash {
	if !shows(e.Data, e.DataHash) || !shows(e.Meta, e.MetaHash) {
		v.fail("%s: its data or metadata does not match its hash", e)
	}
	if _, ok := e.Opened(); e.Texts != nil && !ok {
		v.fail("%s: its texts are not those that its data have sealed", e)
	}
	return e.hash()
}

func (v *verifier) see(e Event) {
	if e.Index != v.log.size {
		v.fail("%s: it has place %d, and is number %d", e, e.Index, v.log.size)
	}
	h := v.leaf(e)
	if e.Leaf != "" && e.Leaf != base64.StdEncoding.EncodeToString(h[:]) {
		v.fail("%s: it is not the one that the service's tree has at place %d", e, e.Index)
	}
	v.log.add(h)
	for ; len(v.kept) > 0 && v.kept[0].size == v.log.size; v.kept = v.kept[1:] {
		v.hold(v.kept[0])
	}
}

// line is one of an export: its head, an event or a checkpoint; or a whole proof.
type line struct {
	Format     string
	Size       int64
	Event      *Event
	Path       []string
	Checkpoint string
}

func (v *verifier) read(file io.Reader) error {
	lines := json.NewDecoder(file)
	size := int64(-1)
	for {
		var l line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("behind %d events: %w", v.log.size, err)
		}
		switch {
		case l.Format == "humanqa-log-1":
			size = l.Size
		case l.Event != nil && l.Checkpoint != "":
			return v.prove(l)
		case l.Event != nil:
			v.see(*l.Event)
		case l.Checkpoint != "":
			if c, err := v.key.open(l.Checkpoint); err != nil || c.size != v.log.size {
				v.fail("the checkpoint of %d events stands behind %d (%v)", c.size, v.log.size, err)
			} else {
				v.hold(c)
			}
		}
	}
	if v.log.size != size {
		v.fail("it says that it has %d events, and has %d", size, v.log.size)
	}
	for _, c := range v.kept {
		v.fail("a checkpoint has %d events (%s): the end is missing", c.size, c.lines)
	}
	switch {
	case v.held == 0:
		v.fail("there is no checkpoint to hold it against")
	case v.bad == 0:
		root := v.log.root()
		_, _ = fmt.Fprintf(v.out, "ok: %d events, %d checkpoints, root %s\n", v.log.size, v.held,
			base64.StdEncoding.EncodeToString(root[:]))
	}
	return nil
}

// prove follows the audit path from the leaf up (RFC 9162, section 2.1.3.2).
func (v *verifier) prove(l line) error {
	v.proved = l.Event
	c, err := v.key.open(l.Checkpoint)
	if err != nil {
		return fmt.Errorf("the proof's checkpoint: %w", err)
	}
	if slices.ContainsFunc(v.kept, func(k checkpoint) bool { return k.size == c.size && k.root != c.root }) {
		v.fail("the proof's checkpoint of %d events has another root than the one that was kept", c.size)
	}
	at, last, h := l.Event.Index, c.size-1, v.leaf(*l.Event)
	for _, step := range l.Path {
		raw, err := base64.StdEncoding.DecodeString(step)
		if err != nil || len(raw) != sha256.Size || last == 0 {
			return errors.New("the proof's path is none")
		}
		if at&1 == 1 || at == last {
			for h = nodeHash(hash(raw), h); at&1 == 0 && at != 0; {
				at, last = at>>1, last>>1
			}
		} else {
			h = nodeHash(h, hash(raw))
		}
		at, last = at>>1, last>>1
	}
	if last != 0 || h != c.root || l.Event.Index < 0 || l.Event.Index >= c.size {
		v.fail("%s: it is not proved to be one of the %d that were signed (%s)", l.Event, c.size, c.lines)
	}
	if v.bad == 0 {
		_, _ = fmt.Fprintf(v.out, "ok: %s is one of the %d that were signed (%s)\n", l.Event, c.size, c.lines)
	}
	return nil
}

func (v *verifier) verify(keyText, name string, against []string) (err error) {
	if v.key, err = parseKey(keyText); err != nil {
		return err
	}
	for _, file := range against {
		signed, fileErr := os.ReadFile(file)
		c, err := v.key.open(string(signed))
		if err != nil {
			return fmt.Errorf("%s: %w", file, errors.Join(fileErr, err))
		}
		v.kept = append(v.kept, c)
	}
	slices.SortFunc(v.kept, func(a, b checkpoint) int { return int(a.size - b.size) })
	file, err := os.Open(name)
	if err == nil {
		err = v.read(file)
	}
	return err
}

// Check verifies a file, an export or a proof, and writes its findings to out. bad is the
// number of faults. proved is the event of a proof; nil of an export.
func Check(key, file string, checkpoints []string, out io.Writer) (bad int, proved *Event) {
	v := verifier{out: out}
	if err := v.verify(key, file, checkpoints); err != nil {
		v.fail("%v", err)
	}
	return v.bad, v.proved
}
