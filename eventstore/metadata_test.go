package eventstore

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"humanqa/domain"
)

// Whatever metadataOf reads, encoding/json reads the same way; and it reads what is
// written.
func TestMetadataAreReadAsEncodingJSONReadsThem(t *testing.T) {
	t.Parallel()
	same := func(t interface{ Errorf(string, ...any) }, text string) (fast bool) {
		got, fast := metadataOf([]byte(text))
		if !fast {
			return false
		}
		var want domain.Metadata
		if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis %+v\nnot %+v, %v", text, got, want, err)
		}
		return true
	}
	full := domain.Metadata{
		CommandID: uuid.New(), CorrelationID: "r-1", CausationID: "c-1", Actor: "policy:sla", AccountID: "acc",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Schema: 12,
	}
	written, err := marshal(full)
	if err != nil || !same(t, string(written)) {
		t.Fatalf("%s is not read, %v", written, err)
	}
	for _, odd := range []string{
		"", "{", "{}", "null", "[]", `{"`, `{"actor":`, `{"actor":"a"`, `{"actor":"a"},`, `{"actor":"a",}`, `{"actor":"a"}x`, `{"actor": "a"}`,
		`{"actor":"\u0061"}`, `{"actor":"ü"}`, `{"actor":null}`, `{"actor":1}`, `{"Actor":"a"}`, `{"a\"ctor":"a"}`, `{"parts":2,"actor":"a"}`,
		`{"schema":"1"}`, `{"schema":01}`, `{"schema":-1}`, `{"schema":1.5}`, `{"schema":1e3}`, `{"schema":12345678901}`, `{"schema":}`,
		`{"commandId":"0f8fad5bd9cb469fa16570867728950e"}`, `{"time":"2026-01-02"}`,
	} {
		if same(t, odd) {
			t.Errorf("%s is read, where encoding/json has the word", odd)
		}
	}
	same(t, `{"schema":1,"schema":2}`)
	pieces := strings.SplitAfter(string(written), `,`)
	rapid.Check(t, func(t *rapid.T) {
		m := full
		m.Actor, m.CorrelationID, m.AccountID = rapid.String().Draw(t, "actor"), rapid.String().Draw(t, "correlation"), rapid.String().Draw(t, "account")
		m.Schema = rapid.IntRange(-3, 1<<40).Draw(t, "schema")
		m.Time = time.Unix(rapid.Int64Range(-1<<35, 1<<37).Draw(t, "time"), 5).In(time.FixedZone("", rapid.IntRange(-720, 720).Draw(t, "zone")*60))
		if text, err := marshal(m); err == nil {
			same(t, string(text))
		}
		same(t, "{"+strings.Join(rapid.SliceOf(rapid.SampledFrom(append(pieces, `{`, `}`, `"`, `:`))).Draw(t, "pieces"), ""))
	})
}

func BenchmarkMetadata(b *testing.B) {
	written, _ := marshal(domain.Metadata{CommandID: uuid.New(), CorrelationID: uuid.NewString(), Actor: "checker:ann", AccountID: uuid.NewString(), Time: time.Now().UTC(), Schema: 1})
	b.Run("metadataOf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = metadataOf(written)
		}
	})
	b.Run("encoding json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var m domain.Metadata
			_ = json.Unmarshal(written, &m)
		}
	})
}
