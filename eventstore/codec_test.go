package eventstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/internal/testing/must"
)

var update = flag.Bool("update", false, "write the golden files that are missing")

// golden is one stored event: what the log holds, byte for byte.
type golden struct {
	Type string          `json:"type"`
	Meta json.RawMessage `json:"metadata"`
	Data json.RawMessage `json:"data"`
}

func goldenFile(eventType string, version int) string {
	return filepath.Join("testdata", "golden", fmt.Sprintf("%s.v%d.json", eventType, version))
}

// A golden file is what some release wrote, so it is never rewritten: -update
// only adds what is missing. A field that was added since is tolerated there,
// one that was renamed or dropped is found by TestEveryGoldenFileDecodes.
func TestEveryTypeHasAGoldenFileOfTodaysVersion(t *testing.T) {
	for _, eventType := range Types() {
		name := goldenFile(eventType, Version(eventType))
		_, err := os.Stat(name)
		if errors.Is(err, os.ErrNotExist) && *update {
			err = os.WriteFile(name, encodeGolden(t, eventType), 0o644)
		}
		if err != nil {
			t.Errorf("%v (write it with -update)", err)
		}
	}
}

func encodeGolden(t *testing.T, eventType string) []byte {
	t.Helper()
	event := registry[eventType].New()
	fill(t, reflect.ValueOf(event).Elem(), "")
	e := newEvent(event)
	e.Meta.CommandID = domain.CommandIDFor("golden")
	e.Meta.CausationID = "golden-cause"
	data, meta, err := Encode(e)
	must.NoError(t, err)
	out, err := json.MarshalIndent(golden{Type: eventType, Meta: meta, Data: data}, "", "  ")
	must.NoError(t, err)
	return append(out, '\n')
}

// fill gives every field a value, so that a golden file shows them all.
func fill(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(1 + len(name)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), name)
	case reflect.Slice:
		if ids, is := v.Addr().Interface().(*credits.JobIDs); is {
			*ids = credits.JobIDs{domain.CommandIDFor(name).String()}
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(name))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), name)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 2, 3, 4, 5, 6, 7_000_000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i), v.Type().Field(i).Name)
		}
	default:
		t.Fatalf("an event has a field of kind %s: teach fill about it", v.Kind())
	}
}

// Invariant 13: every event ever written decodes with today's binary, and
// nothing it said is lost on the way.
func TestEveryGoldenFileDecodes(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	must.NoError(t, err)
	for _, name := range files {
		content, err := os.ReadFile(name)
		must.NoError(t, err)
		var g golden
		if err := json.Unmarshal(content, &g); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		event, meta, err := Decode(g.Type, g.Data, g.Meta)
		if err != nil || event == nil {
			t.Errorf("%s: %v, %v", name, event, err)
			continue
		}
		if name != goldenFile(g.Type, meta.Schema) {
			t.Errorf("%s holds %s version %d", name, g.Type, meta.Schema)
		}
		if meta.Schema < Version(g.Type) {
			continue // upcast: its bytes differ
		}
		again, err := domain.EncodeJSON(event)
		must.NoError(t, err)
		var stored, kept bytes.Buffer
		must.NoError(t, errors.Join(json.Compact(&stored, g.Data), json.Compact(&kept, again)))
		if stored.String() != kept.String() {
			t.Errorf("%s: decoded %s, stored %s", name, kept.String(), stored.String())
		}
	}
}

func TestUnknownFieldsAreIgnored(t *testing.T) {
	event, meta, err := Decode("account.suspended", []byte(`{"reason":"r","new":{"a":1}}`), []byte(`{"actor":"operator","new":1}`))
	if err != nil || meta.Actor != "operator" || !strings.Contains(fmt.Sprintf("%+v", event), "r") {
		t.Errorf("%+v %+v %v", event, meta, err)
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for name, stored := range map[string][2]string{
		"data":            {`{"reason":1}`, `{"schema":1}`},
		"no data":         {``, `{"schema":1}`},
		"metadata":        {`{}`, `{"schema":"one"}`},
		"a newer version": {`{}`, `{"schema":99}`},
	} {
		if event, _, err := Decode("account.suspended", []byte(stored[0]), []byte(stored[1])); err == nil {
			t.Errorf("%s: %+v", name, event)
		}
	}
}

type renamed struct {
	Name string `json:"name"`
}

func (*renamed) EventType() string { return "test.renamed" }

// Not parallel: it adds a type for a moment.
func TestOldVersionsAreUpcastStepByStep(t *testing.T) {
	step := func(from, to string) func([]byte) ([]byte, error) {
		return func(data []byte) ([]byte, error) { return bytes.ReplaceAll(data, []byte(from), []byte(to)), nil }
	}
	spec := domain.EventSpec{
		New: func() domain.Event { return new(renamed) }, Version: 3,
		Upcast: map[int]func([]byte) ([]byte, error){1: step("label", "title"), 2: step("title", "name")},
	}
	for name, v := range register([]domain.EventSpec{spec}) {
		registry[name] = v
		defer delete(registry, name)
	}
	for _, stored := range [][2]string{
		{`{"label":"x"}`, `{}`},
		{`{"label":"x"}`, `{"schema":1}`},
		{`{"title":"x"}`, `{"schema":2}`},
		{`{"name":"x"}`, `{"schema":3}`},
	} {
		event, _, err := Decode("test.renamed", []byte(stored[0]), []byte(stored[1]))
		if r, ok := event.(*renamed); err != nil || !ok || r.Name != "x" {
			t.Errorf("%v: %+v, %v", stored, event, err)
		}
	}
	_, meta, err := Encode(newEvent(&renamed{}))
	if err != nil || !strings.Contains(string(meta), `"schema":3`) {
		t.Errorf("written with %s, %v", meta, err)
	}
}

func TestARegistryWithAMistakeStopsTheBinary(t *testing.T) {
	one := domain.EventSpec{New: func() domain.Event { return new(renamed) }}
	gap := one
	gap.Version = 2
	for name, specs := range map[string][]domain.EventSpec{"twice": {one, one}, "no upcaster": {gap}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: accepted", name)
				}
			}()
			register(specs)
		}()
	}
}

// Whatever holds a secret, or the hash of one, is shown sealed.
func TestNoSecretIsShown(t *testing.T) {
	secrets := map[string]int{
		"account.key_issued": 1, "checker.created": 1, "job.created": 2,
		"project.created": 1, "project.hook_rotated": 1, "project.webhook_secret_set": 2,
		"log.part": 1, "job.question_answered": 1, "project.hook_signature_set": 1, "project.webhook_headers_set": 2, "project.chat_set": 1,
	}
	for _, eventType := range Types() {
		content := encodeGolden(t, eventType)
		var g golden
		must.NoError(t, json.Unmarshal(content, &g))
		got := Redact(eventType, g.Data)
		if n := strings.Count(string(got), domain.HiddenText); n != secrets[eventType] {
			t.Errorf("%s shows %d fields sealed, want %d: %s", eventType, n, secrets[eventType], got)
		}
		if !json.Valid(got) {
			t.Errorf("%s: not json: %s", eventType, got)
		}
	}
}

func TestRedactKeepsTheRestAsItIs(t *testing.T) {
	in := `{"url":"https://x/?a<b","items":[{"id":"1","n":1.50,"hash":"h"},[],{}],"credentials":{"a":[1]},"z":null,"big":12345678901234567890}`
	want := `{"url":"https://x/?a<b","items":[{"id":"1","n":1.50,"hash":"[sealed]"},[],{}],"credentials":"[sealed]","z":null,"big":12345678901234567890}`
	if got := string(Redact("job.created", []byte(in))); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A name may be written with escapes.
	if got := string(Redact("job.created", []byte(`{"\u0068ash":"h","title":"t"}`))); got != `{"hash":"[sealed]","title":"t"}` {
		t.Errorf("got %s", got)
	}
	for eventType, data := range map[string]string{"job.unheard_of": `{"url":"x"}`, "job.created": `{"url":`} {
		if got := string(Redact(eventType, []byte(data))); got != `"[sealed]"` {
			t.Errorf("%s: %s", eventType, got)
		}
	}
}

// A declared projection gets no text, no secret and no hash of any event.
func TestWhatTheLogHoldsSealedIsAbsentWithoutSealed(t *testing.T) {
	t.Parallel()
	e := &job.Created{
		Submission: job.Submission{AccountID: "acc", URL: "https://x", Title: `a "b", {c`, Price: 5, Target: job.Target{Device: "phone"}},
		Items:      []job.Item{{ID: "1", Key: "k", Description: `\"}`, Severity: job.Minor}}, Credentials: "s",
	}
	want := `{"accountId":"acc","type":"","typeEcho":"","slaMinutes":0,"price":5,"source":"","target":{},` +
		`"items":[{"id":"1","key":"k","severity":"minor"}],"createdAt":"0001-01-01T00:00:00Z"}`
	got, err := WithoutSealed(e)
	must.NoError(t, err)
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, e := range []domain.Event{&account.Created{Name: "Acme"}, &account.KeyIssued{KeyID: "k", Name: "mine", Hash: "h"}} {
		got, err := WithoutSealed(e)
		must.NoError(t, err)
		if text := string(got); !json.Valid(got) || strings.Contains(text, "Acme") || strings.Contains(text, "mine") || strings.Contains(text, `"h"`) {
			t.Errorf("%s shows %s", e.EventType(), text)
		}
	}
}
