package blob

import (
	"bytes"
	"encoding/binary"
	"slices"

	"humanqa/internal/webm"
)

// Kind is a kind of file that is taken in.
type Kind struct {
	Media string // the content type it is served as
	Video bool
}

// SniffLength is how much of a file's beginning KindOf wants to see.
const SniffLength = 512

var kinds = []struct {
	Kind
	is func(head []byte) bool
}{
	{Kind{Media: "image/png"}, isPNG},
	{Kind{Media: "image/jpeg"}, starts("\xff\xd8\xff")},
	{Kind{Media: "image/gif"}, isGIF},
	{Kind{Media: "image/webp"}, isWebP},
	{Kind{Media: "video/mp4", Video: true}, isMP4},
	{Kind{Media: "video/webm", Video: true}, webm.Is},
}

// KindOf tells by the first bytes what a file is. It is false for a kind that is not on
// the list, above all for files that a browser would run (HTML, SVG, PDF). The client's
// name for the file plays no part.
func KindOf(head []byte) (Kind, bool) {
	for _, k := range kinds {
		if k.is(head) {
			return k.Kind, true
		}
	}
	return Kind{}, false
}

func starts(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// isPNG wants the first chunk, too.
func isPNG(head []byte) bool {
	return starts("\x89PNG\r\n\x1a\n")(head) && len(head) >= 16 && string(head[12:16]) == "IHDR"
}

func isGIF(head []byte) bool { return starts("GIF87a")(head) || starts("GIF89a")(head) }

// isWebP: RIFF, a length, WEBP and the first chunk, which is VP8, VP8L or VP8X.
func isWebP(head []byte) bool {
	return starts("RIFF")(head) && len(head) >= 16 && string(head[8:15]) == "WEBPVP8"
}

// mp4Brands are the brands that browsers play as video/mp4. HEIC, AVIF and
// QuickTime files begin alike, under other brands.
var mp4Brands = []string{
	"isom", "iso2", "iso3", "iso4", "iso5", "iso6", "iso7", "iso8", "iso9",
	"mp41", "mp42", "avc1", "hvc1", "hev1", "av01", "dash", "cmfc", "cmf2", "M4V ", "MSNV", "mmp4",
}

// isMP4 reads the ftyp box (ISO 14496-12, section 4.3): its size, "ftyp", the
// major brand.
func isMP4(head []byte) bool {
	if len(head) < 16 || string(head[4:8]) != "ftyp" {
		return false
	}
	size := binary.BigEndian.Uint32(head)
	return size >= 16 && size <= 4096 && slices.Contains(mp4Brands, string(head[8:12]))
}
