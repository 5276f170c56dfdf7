// Package webmtest makes recordings as browsers write them, for tests.
package webmtest

import (
	"bytes"
	"encoding/binary"
)

// Film is a recording with five frames a second, each second a cluster of unknown
// size that begins with a key frame.
type Film struct {
	Seconds int
	Frame   int  // bytes of a frame
	Sizes   bool // the clusters' sizes are written
	Groups  bool // frames come in groups, as with alpha
	Sound   bool // an empty track of sound comes first
}

// Bytes is the recording.
func (f Film) Bytes() []byte {
	b := f.Head()
	for n := range f.Seconds {
		b = append(b, f.Second(n)...)
	}
	return b
}

// Head is the part before the first cluster.
func (f Film) Head() []byte {
	b := append(element(0x1A45DFA3, element(0x4282, []byte("webm"))), Live(0x18538067)...)
	b = append(b, element(0x1549A966, append(number(0x2AD7B1, 1_000_000), element(0x4D80, []byte("test"))...))...)
	track := func(n, kind uint64) []byte { return element(0xAE, append(number(0xD7, n), number(0x83, kind)...)) }
	tracks := track(1, 1)
	if f.Sound {
		tracks = append(track(1, 2), track(2, 1)...)
	}
	return append(b, element(0x1654AE6B, tracks)...)
}

// Second is the n-th cluster.
func (f Film) Second(n int) []byte {
	content := number(0xE7, uint64(n)*1000)
	for i := range 5 {
		track, flags := byte(0x81), byte(0)
		if f.Sound {
			track = 0x82
		}
		if i == 0 && !f.Groups {
			flags = 0x80
		}
		at := uint16(i * 200)
		block := append(binary.BigEndian.AppendUint16([]byte{track}, at), flags)
		block = append(block, bytes.Repeat([]byte{byte(n)}, f.Frame)...)
		if !f.Groups {
			content = append(content, element(0xA3, block)...)
			continue
		}
		group := element(0xA1, block)
		if i > 0 {
			group = append(group, number(0xFB, 200)...)
		}
		content = append(content, element(0xA0, group)...)
	}
	if f.Sizes {
		return element(0x1F43B675, content)
	}
	return append(Live(0x1F43B675), content...)
}

// Live begins an element of unknown size.
func Live(id uint32) []byte {
	return append(ident(id), 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF)
}

func ident(id uint32) []byte { return bytes.TrimLeft(binary.BigEndian.AppendUint32(nil, id), "\x00") }

func element(id uint32, content []byte) []byte {
	size := uint64(len(content)) | 1<<56
	return append(binary.BigEndian.AppendUint64(ident(id), size), content...)
}

func number(id uint32, n uint64) []byte { return element(id, binary.BigEndian.AppendUint64(nil, n)) }
