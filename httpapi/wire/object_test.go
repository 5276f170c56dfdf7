package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"humanqa/domain"
)

func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"60": "60", "60.0": "60", "6e1": "60", "-5": "-5", "0": "0", "null": "absent",
		"60.5": "n: must be a whole number", "1e99": "n: must be a whole number", "1e999": "n: must be a whole number",
		"99999999999999999999": "n: must be a whole number",
		`"60"`:                 "n: must be a number", "true": "n: must be a number", "[60]": "n: must be a number",
	} {
		var p Problems
		n, ok := ParseObject([]byte(`{"n": `+raw+` }`), &p).Integer("n")
		got := "absent"
		if err := p.Err(); err != nil {
			got = errorDetails(t, err)[0]
		} else if ok {
			got = fmt.Sprint(n)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}

func TestValuesAreCutOutOfTheBodyExactly(t *testing.T) {
	t.Parallel()
	var p Problems
	o := ParseObject([]byte("{ \"a\" : 1 ,\"b\":\t[ 1 , {\"x\":\"}\"} ] , \"c\" :\"\\\"\" ,\"d\": null , \"e\":-1.5e3\n}"), &p)
	want := map[string]string{"a": "1", "b": `[ 1 , {"x":"}"} ]`, "c": `"\""`, "d": "null", "e": "-1.5e3"}
	got := map[string]string{}
	for k, v := range o.fields {
		got[k] = string(v.raw)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzParseObject(f *testing.F) {
	for _, seed := range []string{`{}`, `{"url":"https://a.example","checklistItems":[{}]}`, `{"a":[1,2,{"b":null}]}`, "\xff", `[[[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var p Problems
		o := ParseObject(body, &p)
		o.Required("url", 2048)
		o.Objects("checklistItems", 100)
		if o.fields == nil && p.Err() == nil {
			t.Error("a body that is no object was accepted")
		}
		for name, v := range o.fields {
			if !json.Valid(v.raw) {
				t.Errorf("%q holds %q", name, v.raw)
			}
		}
	})
}

func errorDetails(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Kind != domain.KindInvalid {
		t.Fatalf("got %v, want an invalid request", err)
	}
	list, _ := refused.Extras["details"].([]domain.Detail)
	var out []string
	for _, d := range list {
		out = append(out, d.Path+": "+d.Message)
	}
	return out
}
