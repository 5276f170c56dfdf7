package blob

import "testing"

func TestAFileIsWhatItsFirstBytesSay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ head, media string }{
		"PNG":                     {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01", "image/png"},
		"JPEG":                    {"\xff\xd8\xff\xe0\x00\x10JFIF", "image/jpeg"},
		"GIF of 1987":             {"GIF87a\x01\x00\x01\x00", "image/gif"},
		"GIF of 1989":             {"GIF89a\x01\x00\x01\x00", "image/gif"},
		"WebP":                    {"RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00", "image/webp"},
		"lossless WebP":           {"RIFF\x24\x00\x00\x00WEBPVP8L\x18\x00", "image/webp"},
		"MP4":                     {"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41", "video/mp4"},
		"iPhone's MP4":            {"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom", "video/mp4"},
		"WebM":                    {"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm\x42\x87", "video/webm"},
		"WebM, size of 8 bytes":   {"\x1a\x45\xdf\xa3\x01\x00\x00\x00\x00\x00\x00\x1f\x42\x86\x81\x01\x42\x82\x84webm", "video/webm"},
		"Matroska":                {"\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\x82\x88matroska\x42\x87", ""},
		"EBML that names no type": {"\x1a\x45\xdf\xa3\x84\x42\x86\x81\x01", ""},
		"EBML that is cut off":    {"\x1a\x45\xdf\xa3\x9f\x42\x82\x8fwebm", ""},
		"EBML of nothing":         {"\x1a\x45\xdf\xa3", ""},
		"EBML of zeros":           {"\x1a\x45\xdf\xa3\x00\x00\x00\x00", ""},
		"webm only as a word":     {"\x1a\x45\xdf\xa3\x9f<html>webm\x42\x82\x84webm", ""},
		"HEIC":                    {"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", ""},
		"AVIF":                    {"\x00\x00\x00\x1cftypavif\x00\x00\x00\x00avifmif1", ""},
		"QuickTime":               {"\x00\x00\x00\x14ftypqt  \x00\x00\x00\x00qt  ", ""},
		"ftyp without a size":     {"\x00\x00\x00\x00ftypisom\x00\x00\x02\x00", ""},
		"WAV":                     {"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00", ""},
		"PNG without a picture":   {"\x89PNG\r\n\x1a\n<script>alert(1)</script>", ""},
		"HTML":                    {"<!doctype html><script>alert(1)</script>", ""},
		"SVG":                     {`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`, ""},
		"PDF":                     {"%PDF-1.7\n", ""},
		"text before a PNG":       {" \x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", ""},
		"one byte":                {"\xff", ""},
		"nothing":                 {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind, ok := KindOf([]byte(c.head))
			if kind.Media != c.media || ok != (c.media != "") {
				t.Errorf("got %q, %v, want %q", kind.Media, ok, c.media)
			}
		})
	}
}

// No head whatsoever makes it panic, or a kind that is not on the list.
func FuzzKindOf(f *testing.F) {
	f.Add([]byte("\x1a\x45\xdf\xa3\x01\xff\xff\xff\xff\xff\xff\xff\x42\x82\x84webm"))
	f.Add([]byte("\x00\x00\x00\x20ftypisom"))
	f.Fuzz(func(t *testing.T, head []byte) {
		kind, ok := KindOf(head)
		if ok == (kind == Kind{}) {
			t.Errorf("%q: %v, %v", head, kind, ok)
		}
	})
}
