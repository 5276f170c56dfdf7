package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"humanqa/domain"
	"humanqa/internal/testing/must"
)

// jsonText draws a JSON string as a client may spell it.
func jsonText() *rapid.Generator[string] {
	part := rapid.SampledFrom([]string{
		"a", "é", "☃", "😀", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\u2603`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\uD83Da`,
		`\ud83d\ud83d\ude00`, `\u0000`, "}", "]", ",", ":", " ", "{", "[",
	})
	return rapid.Custom(func(t *rapid.T) string {
		return `"` + strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "") + `"`
	})
}

func jsonValue(depth int) *rapid.Generator[string] {
	gap := rapid.SampledFrom([]string{"", "", " ", "\n\t\r "})
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if depth == 0 {
			kind = min(kind, 1)
		}
		between := func(what string) string {
			return gap.Draw(t, "before") + what + gap.Draw(t, "behind")
		}
		switch kind {
		case 0:
			return rapid.SampledFrom([]string{"1", "-0.5e+7", "true", "false", "null", "12345678901234567890"}).Draw(t, "scalar")
		case 1:
			return jsonText().Draw(t, "text")
		case 2:
			var list []string
			for range rapid.IntRange(0, 4).Draw(t, "elements") {
				list = append(list, between(jsonValue(depth-1).Draw(t, "element")))
			}
			return "[" + gap.Draw(t, "gap") + strings.Join(list, ",") + "]"
		}
		var fields []string
		for n := range rapid.IntRange(0, 4).Draw(t, "members") {
			key := jsonText().Draw(t, "key")
			key = fmt.Sprintf(`%s%d"`, key[:len(key)-1], n)
			fields = append(fields, between(key)+":"+between(jsonValue(depth-1).Draw(t, "value")))
		}
		return "{" + gap.Draw(t, "gap") + strings.Join(fields, ",") + "}"
	})
}

// The library's decoder decides: the same parts, and as many characters.
func TestWhatIsSplitIsWhatADecoderSplits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		raw := json.RawMessage(jsonValue(3).Draw(t, "value"))
		if !json.Valid(raw) {
			t.Fatalf("%s is not valid", raw)
		}
		var want any
		var got any
		switch raw[0] {
		case '{':
			fields := map[string]json.RawMessage{}
			members(raw, func(name string, value json.RawMessage) bool {
				fields[name] = value
				return true
			})
			wanted := map[string]json.RawMessage{}
			must.NoError(t, json.Unmarshal(raw, &wanted))
			got, want = fmt.Sprintf("%q", fields), fmt.Sprintf("%q", wanted)
		case '[':
			list, wanted := []json.RawMessage{}, []json.RawMessage{}
			elements(raw, func(value json.RawMessage) bool {
				list = append(list, value)
				return true
			})
			must.NoError(t, json.Unmarshal(raw, &wanted))
			got, want = fmt.Sprintf("%q", list), fmt.Sprintf("%q", wanted)
		case '"':
			var s string
			must.NoError(t, json.Unmarshal(raw, &s))
			got, want = characters(raw), utf8.RuneCountInString(s)
		default:
			got, want = skipValue(raw, 0), len(raw)
		}
		if got != want {
			t.Fatalf("%s: got %v, want %v", raw, got, want)
		}
	})
}

func TestALongTextIsRefusedByWhatItWouldBeUnescaped(t *testing.T) {
	t.Parallel()
	body := append(append([]byte(`{"title":"`), bytes.Repeat([]byte(`\u00e9`), 1<<20)...), `"}`...)
	var p Problems
	o := ParseObject(body, &p)
	_ = o.Required("title", 200)
	if want := []domain.Detail{{Path: "title", Message: "must have at most 200 characters, has 1048576"}}; !reflect.DeepEqual(p.details, want) {
		t.Errorf("got\n%v\nwant\n%v", p.details, want)
	}
}
