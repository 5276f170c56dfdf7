// Package filetest makes the smallest whole file of each kind that is taken as evidence.
package filetest

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"humanqa/internal/testing/webmtest"
)

// Whole is a file of the media type that programs can open. Text stands in it where they do
// not look, and where no clean-up takes it away; it must have no byte 0xff.
func Whole(media, text string) string {
	switch media {
	case "image/png":
		pixel := "\x78\x01\x63\x60\x60\x60\x00\x00\x00\x04\x00\x01" // one grey dot, and behind its end the text
		return "\x89PNG\r\n\x1a\n" + chunk("IHDR", "\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00") +
			chunk("IDAT", pixel+text) + chunk("IEND", "")
	case "image/jpeg":
		return "\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00" +
			"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + text + "\xff\xd9"
	case "image/gif":
		blocks := "\x02\x02\x44\x01"
		for ; text != ""; text = text[min(255, len(text)):] {
			blocks += string([]byte{byte(min(255, len(text)))}) + text[:min(255, len(text))]
		}
		return "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x01\x01\x01,\x00\x00\x00\x00\x01\x00\x01\x00\x00" + blocks + "\x00;"
	case "image/webp":
		dot := riff("VP8L", "\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07")
		return riff("RIFF", "WEBP"+dot+riff("TEXT", text))
	case "video/mp4":
		return box("ftyp", "isom\x00\x00\x02\x00isomiso2avc1mp41") + box("moov", box("mvhd", strings.Repeat("\x00", 100))) +
			box("mdat", text)
	}
	film := strings.Replace(string(webmtest.Film{Seconds: 1, Frame: 3}.Bytes()), "test", "\x00\x00\x00\x00", 1) // it names no program
	return film + "\xa3\x01" + string(binary.BigEndian.AppendUint64(nil, uint64(len(text)+4))[1:]) +
		"\x81\x00\x00\x80" + text
}

// PNG is a whole picture with a text in it, by which it differs from others.
func PNG(text string) string { return Whole("image/png", text) }

func chunk(kind, text string) string {
	sum := crc32.ChecksumIEEE([]byte(kind + text))
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + kind + text + string(binary.BigEndian.AppendUint32(nil, sum))
}

func riff(kind, text string) string {
	return kind + string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text + strings.Repeat("\x00", len(text)%2)
}

func box(kind, text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)+8))) + kind + text
}
