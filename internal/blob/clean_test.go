package blob_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"strings"
	"testing"

	"humanqa/internal/blob"
	"humanqa/internal/testing/filetest"
	"humanqa/internal/testing/must"
	"humanqa/internal/webm"
)

const home = "Hauptstraße 1, 52.5200N 13.4050E"

// exif names an author, and says that the picture lies on its side.
func exif(order binary.AppendByteOrder, mark string) string {
	b := append([]byte(mark), order.AppendUint16(nil, 42)...)
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, entry := range [][4]uint32{{0x0112, 3, 1, 6}, {0x013b, 2, uint32(len(home)), 38}} { // orientation, artist
		b = order.AppendUint16(order.AppendUint16(b, uint16(entry[0])), uint16(entry[1]))
		b = order.AppendUint32(b, entry[2])
		if entry[1] == 3 {
			b = order.AppendUint16(order.AppendUint16(b, uint16(entry[3])), 0)
		} else {
			b = order.AppendUint32(b, entry[3])
		}
	}
	return string(order.AppendUint32(b, 0)) + home
}

func picture() image.Image {
	p := image.NewRGBA(image.Rect(0, 0, 40, 30))
	for x := range 40 {
		for y := range 30 {
			p.Set(x, y, color.RGBA{uint8(x * 6), uint8(y * 8), uint8(x * y), 255})
		}
	}
	return p
}

func segment(kind byte, text string) string {
	return string(binary.BigEndian.AppendUint16([]byte{0xff, kind}, uint16(len(text)+2))) + text
}

func chunk(kind, text string) string {
	whole := string(binary.BigEndian.AppendUint32(nil, uint32(len(text)))) + kind + text
	return whole + string(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(kind+text))))
}

func riff(kind, text string) string {
	return kind + string(binary.LittleEndian.AppendUint32(nil, uint32(len(text)))) + text + strings.Repeat("\x00", len(text)%2)
}

func box(kind, text string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(text)+8))) + kind + text
}

func cleaned(t *testing.T, media, file string) string {
	t.Helper()
	kind, known := blob.KindOf([]byte(file))
	if !known || kind.Media != media {
		t.Fatalf("it is %q", kind.Media)
	}
	var out, again bytes.Buffer
	must.NoError(t, kind.Clean(&out, strings.NewReader(file)))
	must.NoError(t, kind.Clean(&again, bytes.NewReader(out.Bytes())))
	if again.String() != out.String() {
		t.Error("a clean file is cleaned again")
	}
	for _, words := range []string{home, "Ann Smith", "xmpmeta", "+52.5200"} {
		if strings.Contains(out.String(), words) {
			t.Errorf("%s keeps %q", media, words)
		}
	}
	return out.String()
}

// same says that both show one picture.
func same(t *testing.T, decode func(string) (image.Image, error), a, b string) {
	t.Helper()
	left, err := decode(a)
	must.NoError(t, err)
	right, err := decode(b)
	must.NoError(t, err)
	for x := range 40 {
		for y := range 30 {
			if left.At(x, y) != right.At(x, y) {
				t.Fatalf("the picture differs at %d, %d", x, y)
			}
		}
	}
}

func TestAPictureLosesWhatTellsOfItsMaker(t *testing.T) {
	t.Parallel()
	const sideways = "MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00\x00\x00\x00\x00"
	for _, tiff := range []string{exif(binary.LittleEndian, "II"), exif(binary.BigEndian, "MM")} {
		var b bytes.Buffer
		must.NoError(t, jpeg.Encode(&b, picture(), nil))
		plain := b.String()
		got := cleaned(t, "image/jpeg", plain[:2]+segment(0xe1, "Exif\x00\x00"+tiff)+segment(0xe1, "http://ns.adobe.com/xap/1.0/\x00<x:xmpmeta>Ann Smith")+
			segment(0xed, "Photoshop Ann Smith")+segment(0xfe, "Ann Smith")+segment(0xe2, "ICC_PROFILE\x00colours")+segment(0xe2, "MPF\x00Ann Smith")+plain[2:]+"a film of Ann Smith")
		if got != plain[:2]+segment(0xe1, "Exif\x00\x00"+sideways)+segment(0xe2, "ICC_PROFILE\x00colours")+plain[2:] {
			t.Errorf("the JPEG has %d bytes of %d", len(got), len(plain))
		}
		same(t, func(s string) (image.Image, error) { return jpeg.Decode(strings.NewReader(s)) }, plain, got)

		b.Reset()
		must.NoError(t, png.Encode(&b, picture()))
		plain = b.String()
		head := len("\x89PNG\r\n\x1a\n") + 12 + 13
		got = cleaned(t, "image/png", plain[:head]+chunk("pHYs", "\x00\x00\x0b\x13\x00\x00\x0b\x13\x01")+chunk("tEXt", "Author\x00Ann Smith")+
			chunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00<x:xmpmeta>")+chunk("tIME", "\x07\xea\x0b\x1c\x09\x00\x00")+chunk("eXIf", tiff)+plain[head:]+"Ann Smith")
		if got != plain[:head]+chunk("pHYs", "\x00\x00\x0b\x13\x00\x00\x0b\x13\x01")+chunk("eXIf", sideways)+plain[head:] {
			t.Errorf("the PNG has %d bytes of %d", len(got), len(plain))
		}
		same(t, func(s string) (image.Image, error) { return png.Decode(strings.NewReader(s)) }, plain, got)

		chunks := riff("VP8X", "\x2c\x00\x00\x00\x27\x00\x00\x1d\x00\x00") + riff("VP8 ", "a picture")
		file := "RIFF" + riff("", "WEBP"+chunks+riff("EXIF", tiff)+riff("XMP ", "<x:xmpmeta>Ann Smith"))
		got = cleaned(t, "image/webp", file)
		if len(got) != len(file) || !strings.Contains(got, chunks) || !strings.Contains(got, sideways) {
			t.Errorf("the WebP is %q", got)
		}
	}
}

func TestAFilmLosesWhatTellsOfItsMaker(t *testing.T) {
	t.Parallel()
	film := box("ftyp", "isom\x00\x00\x02\x00isom") + box("moov", box("mvhd", "times")+box("trak", box("tkhd", "track")+box("udta", "Ann Smith"))+
		box("udta", box("\xa9xyz", "+52.5200+13.4050/"))+box("meta", "Ann Smith")) + box("uuid", "<x:xmpmeta>") + box("mdat", "frames")
	got := cleaned(t, "video/mp4", film)
	if len(got) != len(film) || strings.Index(got, "frames") != strings.Index(film, "frames") || !strings.Contains(got, box("tkhd", "track")) ||
		strings.Count(got, "free") != 4 || strings.Contains(got, "udta") {
		t.Errorf("the film is %q", got)
	}
}

// What breaks its own format is kept: no program shows it.
func TestABrokenFileIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	for media, file := range map[string]string{
		"image/png":  "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89 not much more",
		"image/jpeg": "\xff\xd8\xff\xe0\x00\x10JFIF", "image/gif": "GIF89a\x01\x00", "image/webp": "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00short",
		"video/mp4": "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2\x00\x00\xff\xffmdatshort",
	} {
		if got := cleaned(t, media, file); got != file {
			t.Errorf("%s became %q", media, got)
		}
	}
}

// So is one that no program opens: a page says why it is refused.
func TestAFileThatNoProgramOpensIsRefused(t *testing.T) {
	t.Parallel()
	whole := func(media, file string) error {
		kind, known := blob.KindOf([]byte(file))
		if !known || kind.Media != media {
			t.Fatalf("%q is %q", media, kind.Media)
		}
		var out bytes.Buffer
		must.NoError(t, kind.Clean(&out, strings.NewReader(file)))
		return kind.CleanWhole(io.Discard, strings.NewReader(file))
	}
	cut := func(file, before string) string { return file[:strings.LastIndex(file, before)] }
	for media, lacks := range map[string]map[string]func(file string) string{
		"image/png": {
			"no size": func(file string) string { return file[:20] },
			"no end":  func(file string) string { return cut(file, "\x00\x00\x00\x00IEND") },
		},
		"image/jpeg": {
			"no size": func(file string) string { return strings.Replace(file, "\xff\xc0", "\xff\xdb", 1) },
			"no end":  func(file string) string { return strings.TrimSuffix(file, "\xff\xd9") },
		},
		"image/gif":  {"no size": func(file string) string { return cut(file, ",\x00\x00\x00\x00\x01") }},
		"image/webp": {"no size": func(file string) string { return file[:22] }},
		"video/mp4":  {"nothing to play": func(file string) string { return strings.Replace(file, "moov", "free", 1) }},
		"video/webm": {"nothing to play": func(file string) string { return cut(file, "\x1f\x43\xb6\x75") }},
	} {
		file := filetest.Whole(media, "a text")
		if must.NoError(t, whole(media, file)); cleaned(t, media, file) != file {
			t.Errorf("%s comes back changed", media)
		}
		must.NoError(t, whole(media, file+"more"))
		for lack, of := range lacks {
			var broken blob.BrokenError
			if err := whole(media, of(file)); !errors.As(err, &broken) || !strings.Contains(err.Error(), lack+": it was cut off. Send it again") {
				t.Errorf("%s with %s: %v", media, lack, err)
			}
		}
	}
	for i, encode := range []func(io.Writer) error{
		func(w io.Writer) error { return png.Encode(w, picture()) },
		func(w io.Writer) error { return jpeg.Encode(w, picture(), nil) },
		func(w io.Writer) error { return gif.Encode(w, picture(), nil) },
	} {
		var b bytes.Buffer
		must.NoError(t, encode(&b))
		must.NoError(t, whole([]string{"image/png", "image/jpeg", "image/gif"}[i], b.String()))
	}
	for _, name := range []string{"chromium", "firefox"} { // neither wrote how long it became
		film, err := os.ReadFile("../webm/testdata/" + name + ".webm")
		must.NoError(t, err)
		must.NoError(t, whole("video/webm", string(film)))
	}
}

// A whole file of the helper is one that a decoder of the standard library opens.
func TestTheHelpersPicturesOpen(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"image/png", "image/jpeg", "image/gif"} {
		if size, name, err := image.DecodeConfig(strings.NewReader(filetest.Whole(media, "text"))); err != nil || "image/"+name != media || size.Width != 1 || size.Height != 1 {
			t.Errorf("%s: %s, %v, %v", media, name, size, err)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, file := range []string{
		"\xff\xd8\xff\xe1\x00\x00", "\xff\xd8\xff\xe1\x00\x22Exif\x00\x00" + exif(binary.LittleEndian, "II")[:26], "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00",
		"\x89PNG\r\n\x1a\n" + chunk("IHDR", "1234567890123") + chunk("eXIf", "MM") + chunk("IEND", ""), box("ftyp", "isom\x00\x00\x02\x00") + box("udta", ""),
	} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		if kind, known := blob.KindOf(file); known {
			var out bytes.Buffer
			must.NoError(t, kind.Clean(&out, bytes.NewReader(file)))
		}
	})
}

func TestAGIFLosesWhatTellsOfItsMakerAndStillMoves(t *testing.T) {
	t.Parallel()
	frame := image.NewPaletted(image.Rect(0, 0, 40, 30), color.Palette{color.White, color.Black})
	draw.Draw(frame, frame.Bounds(), picture(), image.Point{}, draw.Src)
	film := &gif.GIF{Image: []*image.Paletted{frame, frame}, Delay: []int{5, 7}, LoopCount: 3}
	var made bytes.Buffer
	must.NoError(t, gif.EncodeAll(&made, film))
	blocks := func(text string) string { return string(rune(len(text))) + text + "\x00" }
	told := "!\xfe" + blocks(home) + "!\xff\x0bXMP DataXMP" + blocks(home) + "!\x01" + blocks(strings.Repeat("a", 12)) + "!\xfe\x00"
	at := 13 + bytes.Index(made.Bytes()[13:], []byte("!\xff"))
	whole := made.String()[:at] + told + made.String()[at:len(made.String())-1] + told + ";" + home
	kind, _ := blob.KindOf([]byte(whole))
	var clean bytes.Buffer
	must.NoError(t, kind.Clean(&clean, strings.NewReader(whole)))
	if clean.String() != made.String() {
		t.Errorf("%d bytes remain of %d, and %d were made", clean.Len(), len(whole), made.Len())
	}
	for cut := range len(whole) {
		var out bytes.Buffer
		must.NoError(t, kind.Clean(&out, strings.NewReader(whole[:cut])))
	}
}

// small takes so many bytes and no more.
type small int

func (s *small) Write(b []byte) (int, error) {
	if *s -= small(len(b)); *s < 0 {
		return 0, errors.New("more came than went in")
	}
	return len(b), nil
}

func TestACleanFileIsNeverLongerThanItCame(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"a box":   box("ftyp", "isom\x00\x00\x02\x00isom") + "\x00\x00\x00\x01udta\x00\x00\xff\xff\xff\xff\xff\xffAnn Smith",
		"a chunk": "RIFF\xff\xff\xff\xffWEBP" + riff("VP8X", "\x2c\x00\x00\x00\x27\x00\x00\x1d\x00\x00") + "XMP \xff\xff\xff\xff<x:xmpmeta>",
	} {
		kind, known := blob.KindOf([]byte(file))
		room := small(len(file))
		if err := kind.Clean(&room, strings.NewReader(file)); err != nil || !known || room != 0 {
			t.Errorf("%s: %v, and %d bytes are missing", name, err, room)
		}
	}
}

// element is one of a WebM, with a size of eight bytes; nested ones are its text.
func element(id, text string) string {
	return id + string(binary.BigEndian.AppendUint64(nil, uint64(len(text))|1<<56)) + text
}

func TestAWebMLosesWhatTellsOfItsMaker(t *testing.T) {
	t.Parallel()
	const live = "\x01\xff\xff\xff\xff\xff\xff\xff" // a size that is unknown
	frames := "\xe7\x81\x00\xa3\x8a\x81\x00\x00\x80frames"
	head := element("\x1a\x45\xdf\xa3", element("\x42\x82", "webm")) + "\x18\x53\x80\x67" + live
	info := func(text string) string {
		return element("\x15\x49\xa9\x66", element("\x2a\xd7\xb1", "\x0f\x42\x40")+element("\x4d\x80", text)+element("\x57\x41", text))
	}
	tracks := func(text string) string {
		return element("\x16\x54\xae\x6b", element("\xae", element("\xd7", "\x01")+element("\x53\x6e", text)))
	}
	void := func(n int) string { return element("\xec", strings.Repeat("\x00", n-9)) }
	named := element("\x7b\xa9", "Ann Smith") + "\x44\x61\x88\x01\x02\x03\x04\x05\x06\x07\x08"
	tags := element("\x12\x54\xc3\x67", "Ann Smith "+strings.Repeat("a", 200)) + element("\x19\x41\xa4\x69", home)
	file := head + info("Ann Smith") + named + tracks("Ann Smith") + tags + "\x1f\x43\xb6\x75" + live + frames + tags + element("\x1f\x43\xb6\x75", frames) + void(40) + "\xec\x89Ann Smith"
	blank := strings.Repeat("\x00", len("Ann Smith"))
	got := cleaned(t, "video/webm", file)
	if len(got) != len(file) || strings.Count(got, frames) != 2 || !strings.HasPrefix(got, head+info(blank)) || !strings.Contains(got, tracks(blank)) ||
		strings.Index(got, frames) != strings.Index(file, frames) {
		t.Errorf("the film is %q", got)
	}
}

func TestWhatBrowsersRecordedPlaysAsLongOnceItIsClean(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"chromium", "firefox"} {
		film, err := os.ReadFile("../webm/testdata/" + name + ".webm")
		must.NoError(t, err)
		got := cleaned(t, "video/webm", string(film))
		before, err := webm.Scan(bytes.NewReader(film))
		must.NoError(t, err)
		after, err := webm.Scan(strings.NewReader(got))
		if err != nil || len(got) != len(film) || after.Duration() != before.Duration() || after.Size() != before.Size() {
			t.Errorf("%s: %v, %d bytes of %d", name, err, len(got), len(film))
		}
		if strings.Contains(got, "Chrome") || strings.Contains(got, "QTmuxingAppLibWebM") {
			t.Errorf("%s names the program that made it", name)
		}
	}
}
