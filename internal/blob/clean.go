package blob

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"humanqa/internal/webm"
)

// Clean copies a file without what tells of its maker: place, author, camera, texts. It
// decodes nothing, and a picture keeps its orientation. Where a file breaks its own format,
// the rest is copied as it is: programs show none of it.
//
// What is left out of an MP4, a WebM or a WebP becomes zeros of the same length, because other parts
// name places behind it.
func (k Kind) Clean(out io.Writer, in io.Reader) error { return k.clean(out, in).err }

// CleanWhole is Clean that gives a BrokenError for a file that no program can open.
func (k Kind) CleanWhole(out io.Writer, in io.Reader) error {
	switch c := k.clean(out, in); {
	case c.err != nil || c.sized && c.ended:
		return c.err
	case k.Video:
		return BrokenError("the film has nothing to play: it was cut off. Send it again")
	case !c.sized:
		return BrokenError("the picture has no size: it was cut off. Send it again")
	}
	return BrokenError("the picture has no end: it was cut off. Send it again")
}

// BrokenError says what a file lacks.
type BrokenError string

func (b BrokenError) Error() string { return string(b) }

func (k Kind) clean(out io.Writer, in io.Reader) *cleaner {
	c := &cleaner{in: bufio.NewReaderSize(in, headRoom), out: out}
	switch k.Media {
	case "image/jpeg":
		c.jpeg()
	case "image/png":
		c.png()
	case "image/webp":
		c.webp()
	case "image/gif":
		c.gif()
	case "video/mp4":
		c.boxes(1<<63 - 1)
	case "video/webm":
		c.webm()
	}
	if c.err == nil {
		_, c.err = io.Copy(out, c.in)
	}
	return c
}

// headRoom is more than a segment of a JPEG, in bytes.
const headRoom = 128 << 10

// cleaner copies a file piece by piece. After an error it does nothing more.
type cleaner struct {
	in  *bufio.Reader
	out io.Writer
	err error
	// sized says that the file tells how large its picture is, or which tracks its film has;
	// ended that it has its end mark, or something to play.
	sized, ended bool
}

// next gives the next n bytes without taking them; nil: the file ends before.
func (c *cleaner) next(n int) []byte {
	if c.err != nil {
		return nil
	}
	b, err := c.in.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	if err != nil {
		return nil
	}
	return b
}

// copy takes n bytes; skip drops them.
func (c *cleaner) copy(n int64) { c.pass(c.out, n) }
func (c *cleaner) skip(n int64) { c.pass(io.Discard, n) }

func (c *cleaner) pass(to io.Writer, n int64) {
	if c.err == nil {
		if _, err := io.CopyN(to, c.in, n); !errors.Is(err, io.EOF) { // a file that ends early is copied to its end
			c.err = err
		}
	}
}

func (c *cleaner) put(b []byte) {
	if c.err == nil {
		_, c.err = c.out.Write(b)
	}
}

// blank writes zeros behind with, in the place of n bytes that it drops.
func (c *cleaner) blank(with string, n int64) { c.pass(&blanked{c.out, with}, n) }

// blanked writes as many bytes as it gets, for a file may claim more than it has.
type blanked struct {
	out  io.Writer
	with string
}

func (b *blanked) Write(p []byte) (int, error) {
	zeros := make([]byte, len(p))
	b.with = b.with[copy(zeros, b.with):]
	return b.out.Write(zeros)
}

// upright is EXIF that says nothing but an orientation (Exif 2.32, section 4.6): a TIFF of one
// entry, the value behind orientationAt.
const (
	upright       = "MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00"
	orientationAt = 19
)

// turned is the orientation of EXIF, as EXIF without anything else; empty: it names none.
func turned(exif []byte) string {
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(exif, []byte("II")) {
		order = binary.LittleEndian
	}
	if len(exif) < len(upright) {
		return ""
	}
	at := int(min(order.Uint32(exif[4:]), headRoom))
	if at+2 > len(exif) {
		return ""
	}
	for left := order.Uint16(exif[at:]); left > 0 && at+14 <= len(exif); left, at = left-1, at+12 {
		if entry := exif[at+2:]; order.Uint16(entry) == 0x0112 {
			if value := order.Uint16(entry[8:]); 1 <= value && value <= 8 {
				return upright[:orientationAt] + string(rune(value)) + upright[orientationAt+1:]
			}
		}
	}
	return ""
}

// jpeg walks the segments. What follows the first picture is dropped, too: a phone puts
// films there.
func (c *cleaner) jpeg() {
	c.copy(2)
	for head := c.next(4); head != nil && head[0] == 0xff; head = c.next(4) {
		kind, size := head[1], 2+int(binary.BigEndian.Uint16(head[2:]))
		segment := c.next(size)
		switch {
		case kind == 0xff: // a byte that fills
			c.skip(1)
		case segment == nil || size < 4:
			return
		case kind == 0xe1 && bytes.HasPrefix(segment[4:], []byte("Exif\x00\x00")) && turned(segment[10:]) != "":
			exif := "Exif\x00\x00" + turned(segment[10:])
			c.skip(int64(size))
			c.put(append(binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(2+len(exif))), exif...))
		case kind != 0xda && draws(kind, segment[4:]):
			c.sized = c.sized || strings.IndexByte(jpegFrames, kind) >= 0
			c.copy(int64(size))
		case kind == 0xda:
			c.copy(int64(size))
			if c.scan(); c.err == nil && c.next(2) != nil && c.next(2)[1] == 0xd9 {
				c.copy(2)
				c.ended = true
				_, c.err = io.Copy(io.Discard, c.in)
				return
			}
		default: // APPn, a comment
			c.skip(int64(size))
		}
	}
}

// jpegFrames are the kinds of the segments that tell how large a picture is.
const jpegFrames = "\xc0\xc1\xc2\xc3\xc5\xc6\xc7\xc9\xca\xcb\xcd\xce\xcf"

// draws says that a segment says how the picture looks.
func draws(kind byte, text []byte) bool {
	return kind < 0xe1 || kind == 0xe2 && bytes.HasPrefix(text, []byte("ICC_PROFILE")) || kind == 0xee || kind > 0xef && kind != 0xfe
}

// scan copies the coded picture up to the marker behind it.
func (c *cleaner) scan() {
	for c.err == nil {
		part, err := c.in.ReadSlice(0xff)
		if err == nil { // the marker's first byte stays
			_ = c.in.UnreadByte() // it was read just now
			part = part[:len(part)-1]
		}
		c.put(part)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return
		default:
			switch head := c.next(2); {
			case head != nil && head[1] == 0xff: // a byte that fills
				c.copy(1)
			case head == nil || head[1] != 0 && (head[1] < 0xd0 || head[1] > 0xd7):
				return
			default:
				c.copy(2)
			}
		}
	}
}

// pngChunks are those that say how a picture looks, beside the critical ones.
const pngChunks = "tRNS cHRM gAMA iCCP sBIT sRGB bKGD hIST pHYs sPLT acTL fcTL fdAT cICP mDCV cLLI"

func (c *cleaner) png() {
	c.copy(8)
	for head := c.next(8); head != nil; head = c.next(8) {
		size, kind := int64(binary.BigEndian.Uint32(head)), string(head[4:8])
		whole := c.next(int(min(12+size, headRoom)))
		switch {
		case strings.ContainsFunc(kind, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' }): // no chunk's name
			return
		case kind[0] >= 'A' && kind[0] <= 'Z' || strings.Contains(pngChunks, kind) || size > 1<<31-1 || whole == nil:
			c.sized, c.ended = c.sized || kind == "IHDR" && whole != nil, kind == "IEND" && whole != nil
			if c.copy(12 + size); kind == "IEND" {
				_, c.err = io.Copy(io.Discard, c.in)
			}
		case kind == "eXIf" && turned(whole[8:len(whole)-4]) != "":
			exif := append([]byte(kind), turned(whole[8:len(whole)-4])...)
			c.skip(12 + size)
			c.put(binary.BigEndian.AppendUint32(nil, uint32(len(upright))))
			c.put(binary.BigEndian.AppendUint32(exif, crc32.ChecksumIEEE(exif)))
		default:
			c.skip(12 + size)
		}
	}
}

// loops are the extensions of programs that number the times that an animation runs.
var loops = map[string]bool{"NETSCAPE2.0": true, "ANIMEXTS1.0": true}

// gif walks the blocks (GIF89a, appendix A). Of the extensions it keeps what draws: the
// control of a picture, and the number of times that an animation runs.
func (c *cleaner) gif() {
	head := c.next(13)
	if head == nil {
		return
	}
	c.copy(13 + colours(head[10]))
	for head = c.next(1); head != nil; head = c.next(1) {
		switch head[0] {
		case ',':
			if head = c.next(10); head == nil {
				return
			}
			c.sized, c.ended = true, true
			c.copy(10 + colours(head[9]) + 1)
			c.gifBlocks(c.out)
		case '!':
			to := io.Discard
			if head = c.next(14); head != nil && (head[1] == 0xf9 || head[1] == 0xff && loops[string(head[3:14])]) {
				to = c.out
			}
			c.pass(to, 2)
			c.gifBlocks(to)
		case ';':
			c.copy(1)
			_, c.err = io.Copy(io.Discard, c.in)
			return
		default:
			return
		}
	}
}

// colours is the length of a table of colours, by the flags before it.
func colours(flags byte) int64 {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

// gifBlocks passes blocks on, each behind a byte with its length, up to the empty one.
func (c *cleaner) gifBlocks(to io.Writer) {
	for size := c.next(1); size != nil; size = c.next(1) {
		n := int64(size[0])
		if c.pass(to, 1+n); n == 0 {
			return
		}
	}
}

func (c *cleaner) webp() {
	c.copy(12)
	for head := c.next(8); head != nil; head = c.next(8) {
		kind, size := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		size += size % 2
		switch kind {
		case "EXIF":
			with := upright
			if whole := c.next(int(min(8+size, headRoom))); whole != nil && turned(whole[8:]) != "" {
				with = turned(whole[8:])
			}
			c.copy(8)
			c.blank(with[:min(int64(len(with)), size)], size)
		case "XMP ":
			c.copy(8)
			c.blank("", size)
		default:
			if strings.HasPrefix(kind, "VP8") && c.next(int(min(8+size, headRoom))) != nil {
				c.sized, c.ended = true, true
			}
			c.copy(8 + size)
		}
	}
}

// boxes walks the boxes of an MP4 (ISO 14496-12, section 4.2) within a number of bytes.
func (c *cleaner) boxes(within int64) {
	for head := c.next(8); head != nil && within >= 8; head = c.next(8) {
		size, kind, header := int64(binary.BigEndian.Uint32(head)), string(head[4:8]), int64(8)
		if long := c.next(16); size == 1 && long != nil {
			size, header = int64(binary.BigEndian.Uint64(long[8:])), 16
		}
		if size < header || size > within {
			return
		}
		within -= size
		switch kind {
		case "moov", "trak", "moof", "traf":
			c.sized, c.ended = c.sized || kind == "moov", c.ended || kind == "moov"
			c.copy(header)
			c.boxes(size - header)
		case "udta", "meta", "uuid":
			start := bytes.Replace(bytes.Clone(c.next(int(header))), []byte(kind), []byte("free"), 1)
			c.skip(header)
			c.put(start)
			c.blank("", size-header)
		default:
			c.copy(size)
		}
	}
}

// webm walks the elements as if all were of one level: no id of a level has another meaning on one below.
func (c *cleaner) webm() {
	for c.err == nil {
		b, err := c.in.Peek(webm.HeadRoom)
		if err != nil && !errors.Is(err, io.EOF) {
			c.err = err
			return
		}
		id, head, size, ok := webm.HeadOf(b)
		switch whole := int64(head) + size; {
		case !ok:
			return
		case slices.Contains(webm.Masters, id):
			c.sized, c.ended = c.sized || id == webm.Tracks, c.ended || id == webm.Cluster
			c.copy(int64(head))
		case size < 0: // it ends where none knows
			return
		case slices.Contains(webm.Texts, id):
			c.copy(int64(head))
			c.blank("", size)
		case slices.Contains(webm.Dropped, id):
			void := []byte{0xEC, 0x80 | byte(whole-2)}
			if whole > 0x80 {
				void = binary.BigEndian.AppendUint64(void[:1], uint64(whole-9)|1<<56)
			}
			c.blank(string(void), whole)
		default:
			c.copy(whole)
		}
	}
}
