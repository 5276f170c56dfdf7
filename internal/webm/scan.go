package webm

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"
)

// unknown is the size of an element that ends where the next one of its level
// begins.
const unknown = int64(-1)

// errCut says that the recording ends, or stops making sense, in the middle of an
// element.
var errCut = errors.New("cut off")

// element is the head of one; its content follows.
type element struct {
	id   uint32
	head int   // bytes of id and size
	size int64 // of the content
}

// scan is one pass over a recording.
type scan struct {
	r  *bufio.Reader
	at int64

	header, tracks []byte // as they will be written
	info           []byte // its content, without a duration
	scale          uint64 // nanoseconds of a tick
	cueTrack       uint64 // the first that is seen, or else the first
	isVideo        bool
	last           int64 // the latest time of a block, in ticks
	clusters       []cluster
}

// Scan plans the seekable file. It reads the recording to its end, or to where it
// is cut off. An error that is not ErrNot is the source's.
func Scan(source io.Reader) (*Plan, error) {
	s := &scan{r: bufio.NewReaderSize(source, 64<<10), scale: uint64(time.Millisecond)}
	if err := s.read(); !errors.Is(err, errCut) {
		return nil, err
	}
	if s.tracks == nil || len(s.clusters) == 0 {
		return nil, fmt.Errorf("%w: it ends before anything can be seen", ErrNot)
	}
	p := &Plan{clusters: s.clusters}
	p.layOut(s)
	return p, nil
}

// read goes through the file's elements until it cannot go on: errCut, at best.
func (s *scan) read() error {
	head, err := s.enter()
	if err != nil || head.id != idEBML {
		return s.not(err, "it does not begin like one")
	}
	header, err := s.content(head)
	if err != nil {
		return s.not(err, "its header is not whole")
	}
	s.header = appendElement(nil, head.id, header)
	segment, err := s.enter()
	if err != nil || segment.id != idSegment {
		return s.not(err, "it has no segment")
	}
	for {
		e, err := s.enter()
		if err != nil {
			return err
		}
		switch e.id {
		case idInfo:
			err = s.readInfo(e)
		case idTracks:
			err = s.readTracks(e)
		case idCluster:
			err = s.readCluster(e)
		default:
			err = s.skip(e.size)
		}
		if err != nil {
			return err
		}
	}
}

// not makes the error of a fault at a file's beginning.
func (s *scan) not(err error, why string) error {
	if err != nil && !errors.Is(err, errCut) {
		return err
	}
	return fmt.Errorf("%w: %s", ErrNot, why)
}

// cutAt makes an end of the source errCut; every other error is the source's own.
func cutAt(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errCut
	}
	return err
}

// peek reads the next element's head and stays before it.
func (s *scan) peek() (element, error) {
	b, err := s.r.Peek(HeadRoom)
	if len(b) == 0 || err != nil && !errors.Is(err, io.EOF) {
		return element{}, cutAt(err)
	}
	e, ok := headOf(b)
	if !ok {
		return e, errCut
	}
	return e, nil
}

// HeadRoom is the most that a head has, in bytes.
const HeadRoom = 12

// HeadOf reads the head of the element that b begins with: its id, its own length, and that of the
// content, which is negative where it is unknown.
func HeadOf(b []byte) (id uint32, head int, size int64, ok bool) {
	e, ok := headOf(b)
	return e.id, e.head, e.size, ok
}

// headOf reads the head of the element that b begins with.
func headOf(b []byte) (e element, ok bool) {
	if len(b) == 0 {
		return e, false
	}
	ids := vintLength(b[0])
	if ids > 4 || len(b) <= ids {
		return e, false
	}
	size, n, ok := vint(b[ids:])
	return element{id: uint32(number(b[:ids])), head: ids + n, size: size}, ok
}

// enter reads the next element's head.
func (s *scan) enter() (element, error) {
	e, err := s.peek()
	if err != nil {
		return e, err
	}
	return e, s.skip(int64(e.head))
}

func vintLength(first byte) int { return bits.LeadingZeros8(first) + 1 }

// vint reads a number of up to eight bytes; all ones is unknown.
func vint(b []byte) (n int64, length int, ok bool) {
	if len(b) == 0 {
		return 0, 0, false
	}
	length = vintLength(b[0])
	if length > 8 || len(b) < length {
		return 0, 0, false
	}
	mask := byte(0xFF) >> length
	n, ones := int64(b[0]&mask), b[0]&mask == mask
	for _, c := range b[1:length] {
		n, ones = n<<8|int64(c), ones && c == 0xFF
	}
	if ones {
		n = unknown
	}
	return n, length, true
}

// skip passes over bytes that must be there.
func (s *scan) skip(n int64) error {
	if n < 0 {
		return errCut
	}
	for n > 0 {
		step, err := s.r.Discard(int(min(n, math.MaxInt32)))
		s.at += int64(step)
		n -= int64(step)
		if err != nil {
			return cutAt(err)
		}
	}
	return nil
}

// content reads a small element's content.
func (s *scan) content(e element) ([]byte, error) {
	if e.size < 0 || e.size > maxPart {
		return nil, errCut
	}
	b := make([]byte, e.size)
	n, err := io.ReadFull(s.r, b)
	s.at += int64(n)
	return b, cutAt(err)
}

// children calls each for every element in the content of a small one.
func children(content []byte, each func(e element, content []byte)) {
	for len(content) > 0 {
		e, ok := headOf(content)
		if !ok || e.size < 0 || e.size > int64(len(content)-e.head) {
			return
		}
		end := e.head + int(e.size)
		each(e, content[e.head:end])
		content = content[end:]
	}
}

func number(b []byte) (n uint64) {
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

func (s *scan) readInfo(e element) error {
	all, err := s.content(e)
	if err != nil {
		return err
	}
	s.info = nil
	children(all, func(e element, content []byte) {
		if e.id == idScale {
			s.scale = max(1, min(number(content), uint64(time.Second)))
		}
		if e.id != idDuration {
			s.info = appendElement(s.info, e.id, content)
		}
	})
	return nil
}

func (s *scan) readTracks(e element) error {
	all, err := s.content(e)
	if err != nil {
		return err
	}
	s.tracks = appendElement(nil, idTracks, all)
	s.cueTrack, s.isVideo = 0, false
	children(all, func(e element, content []byte) {
		var of, kind uint64
		if e.id == idEntry {
			children(content, func(e element, content []byte) {
				switch e.id {
				case idNumber:
					of = number(content)
				case idType:
					kind = number(content)
				}
			})
		}
		if seen := kind == videoTrack; of != 0 && (s.cueTrack == 0 || seen && !s.isVideo) {
			s.cueTrack, s.isVideo = of, seen
		}
	})
	return nil
}

// topLevel are the elements before which a cluster of unknown size ends.
var topLevel = []uint32{idCluster, idCues, idTags, idSeekHead, idInfo, idTracks, idChapters, idAttached, idSegment, idEBML}

// readCluster takes the complete elements of a cluster.
func (s *scan) readCluster(e element) error {
	if len(s.clusters) == maxClusters {
		return fmt.Errorf("%w: it has more than %d clusters", ErrNot, maxClusters)
	}
	end := int64(math.MaxInt64)
	if e.size >= 0 {
		end = s.at + e.size
	}
	c := cluster{body: s.at, end: s.at, cue: -1}
	var err error
	var began int64
	for s.at < end && err == nil {
		var child element
		if child, err = s.peek(); err != nil || e.size < 0 && slices.Contains(topLevel, child.id) {
			break
		}
		if child.size < 0 || child.size > end-s.at-int64(child.head) {
			err = errCut
			break
		}
		var b block
		if b, err = s.readChild(child, &began); err != nil {
			break
		}
		c.end = s.at
		if !b.is {
			continue
		}
		at := max(0, began+int64(b.time))
		s.last = max(s.last, at)
		if b.key && b.track == s.cueTrack && c.cue < 0 {
			c.cue = at
		}
	}
	if c.end > c.body {
		s.clusters = append(s.clusters, c)
	}
	return err
}

// block holds the known facts of a block; is is false for another element.
type block struct {
	is, key bool
	track   uint64
	time    int16 // from its cluster's, in ticks
}

// readChild reads an element of a cluster; it tells the cluster's time, or a block.
func (s *scan) readChild(e element, began *int64) (b block, err error) {
	if err := s.skip(int64(e.head)); err != nil {
		return b, err
	}
	switch e.id {
	case idTimestamp:
		if e.size > 8 {
			return b, errCut
		}
		content, err := s.content(e)
		if n := number(content); n <= maxTime {
			*began = int64(n)
		} else if err == nil {
			err = errCut
		}
		return b, err
	case idSimpleBlock:
		var flags byte
		if b, flags, err = s.blockHead(e); err != nil {
			return b, err
		}
		b.key = flags&0x80 != 0
	case idBlockGroup:
		return s.readGroup(e)
	}
	return b, s.skip(e.size)
}

// blockHead looks at a block's track, time and flags, and stays before them.
func (s *scan) blockHead(e element) (b block, flags byte, err error) {
	head, err := s.r.Peek(int(min(e.size, 12)))
	if err != nil {
		return b, 0, cutAt(err)
	}
	track, n, ok := vint(head)
	if !ok || track < 0 || len(head) < n+3 {
		return b, 0, errCut
	}
	return block{is: true, track: uint64(track), time: int16(binary.BigEndian.Uint16(head[n:]))}, head[n+2], nil
}

// readGroup reads a block with its group. A block that refers to no other is a key frame.
func (s *scan) readGroup(e element) (found block, err error) {
	key := true
	for end := s.at + e.size; s.at < end; {
		child, err := s.enter()
		switch {
		case err != nil:
			return found, err
		case child.size < 0 || child.size > end-s.at:
			return found, errCut
		}
		switch child.id {
		case idBlock:
			if found, _, err = s.blockHead(child); err != nil {
				return found, err
			}
		case idReference:
			key = false
		}
		if err := s.skip(child.size); err != nil {
			return found, err
		}
	}
	found.key = found.is && key
	return found, nil
}

// ticks is a time in the recording's own unit, at least one.
func (s *scan) ticks(d time.Duration) int64 { return max(1, int64(d)/int64(s.scale)) }

// span is the duration of so many ticks.
func (s *scan) span(ticks int64) time.Duration {
	if ticks > math.MaxInt64/int64(s.scale) {
		return math.MaxInt64
	}
	return time.Duration(ticks * int64(s.scale))
}
