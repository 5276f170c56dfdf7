package events

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"humanqa/internal/must"
)

func sameWhenLong(t interface{ Errorf(string, ...any) }, text []byte) (short int) {
	s := shorten(text)
	if long, err := lengthen(s); !bytes.Equal(long, text) || err != nil {
		t.Errorf("%s became %q, then %s, %v", text, s, long, err)
	}
	return len(s)
}

func TestWhatWasShortenedIsTheSameByteForByte(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../testdata/golden-log.ndjson")
	must.NoError(t, err)
	defer func() { _ = file.Close() }() // it is only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		sameWhenLong(t, lines.Bytes())
	}
	const id, at = `"0f8fad5b-d9cb-469f-a165-70867728950e"`, `"2026-11-22T19:26:16.414938037Z"`
	if n := sameWhenLong(t, []byte(`{"id":`+id+`,"at":`+at+`}`)); n != 2+17+1+1+9+1 {
		t.Errorf("an id and a time take %d bytes", n)
	}
	for _, text := range []string{
		"", `"`, `{}`, id[:37], strings.ToUpper(id), id + `x`, `"` + id, at[:10], `"2026-11-22T19:26:16Z"`, `"2026-11-22T19:26:16.500Z"`,
		`"2026-11-22T19:26:16+01:00"`, `"0001-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`, `"2026-02-30T00:00:00Z"`,
		`{"note":"\"id\":\u0001 ü 😀"}`, `{"status":"passed","type":"x","typeEcho":"X","url":"http://a"}`,
	} {
		sameWhenLong(t, []byte(text))
	}
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SampledFrom(append(fragments[:], id, at, `"`, `,`, `\"`, `x`, `{`, `0`, `-`))
		text := strings.Join(rapid.SliceOf(pieces).Draw(t, "pieces"), "")
		sameWhenLong(t, []byte(text))
		if quoted, err := json.Marshal(rapid.String().Draw(t, "text")); err == nil {
			sameWhenLong(t, quoted)
		}
	})
}

func TestARowThatIsNoneIsToldOf(t *testing.T) {
	t.Parallel()
	for _, short := range []string{"\x00", "{\x01abc", "\x02\x00\x00", string(rune(shortText + len(fragments)))} {
		if long, err := lengthen([]byte(short)); err == nil && short[0] < ' ' {
			t.Errorf("%q is %s", short, long)
		}
	}
}
