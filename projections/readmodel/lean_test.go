package readmodel_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/credits"
	"humanqa/eventstore"
	"humanqa/internal/must"
	"humanqa/projections/readmodel"
)

// Whatever the log holds decodes to the same event, and takes less.
func TestWhatIsLeanDecodesToTheSame(t *testing.T) {
	t.Parallel()
	file, err := os.Open("../testdata/golden-log.ndjson")
	must.NoError(t, err)
	defer func() { _ = file.Close() }()
	types, whole, lean := map[string]bool{}, 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var stored struct {
			Type       string
			Meta, Data json.RawMessage
		}
		must.NoError(t, json.Unmarshal(lines.Bytes(), &stored))
		event, _, err := eventstore.Decode(stored.Type, stored.Data, stored.Meta)
		must.NoError(t, err)
		text, err := readmodel.Lean(event)
		must.NoError(t, err)
		again, _, err := eventstore.Decode(stored.Type, text, stored.Meta)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want, _ := json.Marshal(event)
		if got, _ := json.Marshal(again); !bytes.Equal(got, want) {
			t.Errorf("%s\n%s became\n%s", stored.Type, want, got)
		}
		types[stored.Type] = true
		whole, lean = whole+len(want), lean+len(text)
	}
	if len(types) < 25 || lean >= whole {
		t.Errorf("%d types; %d bytes instead of %d", len(types), lean, whole)
	}
}

func TestWhatHoldsNothingByChoiceStays(t *testing.T) {
	t.Parallel()
	type inner struct{ N int }
	zero, place := 0, time.FixedZone("x", 3600)
	for want, value := range map[string]any{
		`{}`:   struct{ A, B string }{},
		`null`: (*int)(nil),
		`{"P":0,"L":[]}`: struct {
			P *int
			L []string
			M []string
		}{P: &zero, L: []string{}},
		`{"L":[{},{"N":2}]}`:                 struct{ L []inner }{L: []inner{{}, {2}}},
		`{"N":3}`:                            struct{ inner }{inner{3}},
		`{"S":"<a> \"ü\\\n"}`:                struct{ S string }{"<a> \"ü\\\n"},
		`{"At":"2026-01-02T03:04:05+01:00"}`: struct{ At, None time.Time }{At: time.Date(2026, 1, 2, 3, 4, 5, 0, place)},
		`{"N":"7"}`: struct {
			N int `json:",string"`
		}{7},
	} {
		if got, err := readmodel.Lean(value); string(got) != want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	var none domain.Credits
	if text, err := readmodel.Lean(&credits.Debited{Amount: 5, LowBelow: &none}); !bytes.Contains(text, []byte(`:0`)) || err != nil {
		t.Errorf("a limit of none is %s, %v", text, err)
	}
}
