package domain

import (
	"reflect"
	"strings"
)

// Sealed is the value of the tag `sealed`. A field with it, a string or a list of
// strings, is sealed in the log, and is erased with its subject (decisions, "Erasure of
// one subject").
type Sealed string

// The kinds of sealed fields.
const (
	SealedText   Sealed = "text"   // a free text; after the erasure it reads ErasedText
	SealedLink   Sealed = "link"   // to evidence; empty after the erasure
	SealedSecret Sealed = "secret" // a text that is sealed twice; empty after the erasure
)

const sealedTag = "sealed"

// SealedFields gives the fields of v with the tag, at any depth, by their names in JSON. It
// is nil where there are none.
func SealedFields(v any) map[string]Sealed {
	var fields map[string]Sealed
	seen := map[reflect.Type]bool{}
	var collect func(reflect.Type)
	collect = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for f := range t.Fields() {
			kind, tagged := f.Tag.Lookup(sealedTag)
			if !tagged {
				collect(f.Type)
				continue
			}
			if fields == nil {
				fields = map[string]Sealed{}
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			fields[name] = Sealed(kind)
		}
	}
	collect(reflect.TypeOf(v))
	return fields
}

// WithoutTexts is v after the erasure of its texts. It does not change data that it
// shares with v.
func WithoutTexts[T any](v T) T {
	eraseFields(reflect.ValueOf(&v).Elem())
	return v
}

func eraseFields(v reflect.Value) {
	switch kind := v.Kind(); {
	case kind == reflect.Struct:
		for f, field := range v.Fields() {
			if as, tagged := f.Tag.Lookup(sealedTag); tagged {
				eraseField(field, Sealed(as))
			} else {
				eraseFields(field)
			}
		}
	case !v.CanSet(): // of another package, such as a time's
	case kind == reflect.Pointer && !v.IsNil():
		copied := reflect.New(v.Type().Elem())
		copied.Elem().Set(v.Elem())
		v.Set(copied)
		eraseFields(copied.Elem())
	case kind == reflect.Slice && !v.IsNil():
		copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(copied, v)
		v.Set(copied)
		for i := range copied.Len() {
			eraseFields(copied.Index(i))
		}
	}
}

func eraseField(field reflect.Value, kind Sealed) {
	switch texts, list := field.Interface().([]string); {
	case kind != SealedText:
		field.SetZero()
	case list:
		erased := make([]string, len(texts))
		for i, text := range texts {
			erased[i] = Erased(text)
		}
		if texts != nil {
			field.Set(reflect.ValueOf(erased))
		}
	default:
		field.SetString(Erased(field.String()))
	}
}
