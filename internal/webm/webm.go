// Package webm turns the recording of a browser into a seekable file.
//
// A MediaRecorder writes a live stream: a segment and clusters of unknown size, no
// duration, no cues. Scan reads such a stream once and plans the file: the same
// clusters, byte for byte, with their sizes, and a duration and cues in front. Reader
// writes that plan while it reads the stream again. Neither holds more than a few bytes
// a cluster. A cut-off tail is left out, from the first incomplete block. The rest
// plays.
//
// The format is EBML (RFC 8794) and Matroska (RFC 9559).
package webm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// ErrNot says that a stream is no recording that can be made seekable: it is no
// WebM, or nothing of it is whole.
var ErrNot = errors.New("not a WebM recording")

const (
	// maxClusters bounds the plan: browsers write about one a second.
	maxClusters = 1 << 17
	// maxPart bounds the elements that are taken over whole.
	maxPart = 1 << 20
	// maxTime, in ticks, keeps the arithmetic of times in range.
	maxTime = 1 << 50
	// cueEvery is the least time between two cues, in ticks of a millisecond.
	cueEvery = time.Second
)

// Elements of a WebM file, by their ids.
const (
	idEBML     = 0x1A45DFA3
	idSegment  = 0x18538067
	idInfo     = 0x1549A966
	idTracks   = 0x1654AE6B
	idCluster  = 0x1F43B675
	idCues     = 0x1C53BB6B
	idSeekHead = 0x114D9B74
	idTags     = 0x1254C367
	idChapters = 0x1043A770
	idAttached = 0x1941A469

	idTimestamp   = 0xE7
	idSimpleBlock = 0xA3
	idBlockGroup  = 0xA0
	idBlock       = 0xA1
	idReference   = 0xFB

	idDocType = 0x4282

	idScale    = 0x2AD7B1
	idDuration = 0x4489
	idEntry    = 0xAE
	idNumber   = 0xD7
	idType     = 0x83

	idCuePoint     = 0xBB
	idCueTime      = 0xB3
	idCuePositions = 0xB7
	idCueTrack     = 0xF7
	idCuePosition  = 0xF1
)

// The elements without which a film has nothing to play.
const Tracks, Cluster = idTracks, idCluster

// The elements that a cleaner of a file (blob.Kind.Clean) walks, those whose text it empties, and
// those that it makes Void.
var (
	Masters = []uint32{idSegment, idCluster, idInfo, idTracks, idEntry}
	Texts   = []uint32{0x4D80, 0x5741, 0x7BA9, 0x536E} // MuxingApp, WritingApp, Title, a track's Name
	Dropped = []uint32{
		idTags, idAttached, idChapters, 0xEC, 0xBF, // Void, CRC-32
		0x4461, 0x73A4, 0x7384, 0x3CB923, 0x3C83AB, 0x3EB923, 0x3E83BB, 0x4444, 0x6924, // DateUTC, ids and names of files
	}
)

// videoTrack is the type of a track that is seen.
const videoTrack = 1

// Is says whether a file begins as a WebM does. Other Matroska files begin alike, but for
// the type that the header names.
func Is(head []byte) bool {
	e, ok := headOf(head)
	if !ok || e.id != idEBML {
		return false
	}
	var kind []byte
	children(head[e.head:], func(e element, content []byte) {
		if e.id == idDocType && kind == nil {
			kind = content
		}
	})
	return string(bytes.TrimRight(kind, "\x00")) == "webm"
}

// Plan is how a recording becomes seekable.
type Plan struct {
	front    []byte // all that stands before the first cluster
	clusters []cluster
	size     int64
	duration time.Duration
}

// cluster is a piece of the recording. Its kept content lies from body to end in the
// source.
type cluster struct {
	body, end int64
	cue       int64 // the time of its first key frame, in ticks; negative: none
}

// sized is how long the cluster is in the file.
func (c cluster) sized() int64 { return clusterHead + c.end - c.body }

// clusterHead is how long a cluster's id and size are.
const clusterHead = 4 + 8

// Size is how many bytes the file has.
func (p *Plan) Size() int64 { return p.size }

// Duration is how long the recording lasts, from its beginning to its last block.
func (p *Plan) Duration() time.Duration { return p.duration }

// layOut writes the part before the clusters.
func (p *Plan) layOut(s *scan) {
	duration := binary.BigEndian.AppendUint64(nil, math.Float64bits(float64(s.last)))
	info := appendElement(nil, idInfo, appendElement(s.info, idDuration, duration))
	// The cues' size does not depend on the positions in them.
	before := int64(len(info) + len(s.tracks))
	first := before + int64(len(p.cues(s, 0)))
	content := first
	for _, c := range p.clusters {
		content += c.sized()
	}
	p.front = append(p.front, s.header...)
	p.front = appendSize(appendID(p.front, idSegment), content)
	p.front = append(p.front, info...)
	p.front = append(p.front, s.tracks...)
	p.front = append(p.front, p.cues(s, first)...)
	p.size = int64(len(p.front)) + content - first
	p.duration = s.span(s.last)
}

// cues say where in the segment, whose first cluster stands at first, a player
// can begin.
func (p *Plan) cues(s *scan, first int64) []byte {
	var all []byte
	at, next := first, int64(0)
	for _, c := range p.clusters {
		if c.cue >= next {
			place := appendUint(appendUint(nil, idCueTrack, s.cueTrack), idCuePosition, uint64(at))
			point := appendElement(appendUint(nil, idCueTime, uint64(c.cue)), idCuePositions, place)
			all = appendElement(all, idCuePoint, point)
			next = c.cue + s.ticks(cueEvery)
		}
		at += c.sized()
	}
	if all == nil {
		return nil
	}
	return appendElement(nil, idCues, all)
}

// Reader gives the file. source is the recording again, from its start.
func (p *Plan) Reader(source io.Reader) io.Reader {
	return &reader{source: source, pending: p.front, clusters: p.clusters}
}

type reader struct {
	source   io.Reader
	at       int64  // in the source
	pending  []byte // comes before the rest of the cluster
	left     int64
	clusters []cluster // those that follow
}

func (r *reader) Read(b []byte) (int, error) {
	for len(r.pending) == 0 && r.left == 0 {
		if len(r.clusters) == 0 {
			return 0, io.EOF
		}
		c := r.clusters[0]
		r.clusters = r.clusters[1:]
		skipped, err := io.CopyN(io.Discard, r.source, c.body-r.at)
		r.at += skipped
		if err != nil {
			return 0, early(err)
		}
		r.left = c.end - c.body
		r.pending = appendSize(appendID(nil, idCluster), r.left)
	}
	if len(r.pending) > 0 {
		n := copy(b, r.pending)
		r.pending = r.pending[n:]
		return n, nil
	}
	n, err := r.source.Read(b[:min(int64(len(b)), r.left)])
	r.at += int64(n)
	r.left -= int64(n)
	if n > 0 {
		return n, nil // an end shows again, where it is too early
	}
	return 0, early(err)
}

// early says that the source is shorter than it was when it was scanned.
func early(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("read the recording again: %w", err)
	}
	return nil
}

// Sizes always have eight bytes, so that their own length is known before their value.
func appendSize(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(n)|1<<56)
}

func appendID(b []byte, id uint32) []byte {
	for shift := 24; shift >= 0; shift -= 8 {
		if id>>shift != 0 {
			b = append(b, byte(id>>shift))
		}
	}
	return b
}

func appendElement(b []byte, id uint32, content []byte) []byte {
	return append(appendSize(appendID(b, id), int64(len(content))), content...)
}

func appendUint(b []byte, id uint32, n uint64) []byte {
	return appendElement(b, id, binary.BigEndian.AppendUint64(nil, n))
}
