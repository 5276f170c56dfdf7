package readmodel

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Lean is the JSON of a value without the fields that hold nothing, at any depth: it
// decodes to the same value. What holds nothing by a choice of its own, such as an
// empty list or a pointer to zero, stays.
func Lean(v any) ([]byte, error) { return appendLean(nil, reflect.ValueOf(v)) }

// leanField is a field of a struct: where it is, and "name": as it is written.
type leanField struct {
	index []int
	name  string
	empty bool // omitempty: an empty list goes, too
}

var (
	leanFields sync.Map // reflect.Type to []leanField; nil: the type is left to encoding/json

	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	timeType      = reflect.TypeFor[time.Time]()
)

func appendLean(b []byte, v reflect.Value) ([]byte, error) {
	if !v.IsValid() {
		return append(b, "null"...), nil
	}
	t := v.Type()
	if t.Implements(jsonMarshaler) || t.Implements(textMarshaler) {
		return appendJSON(b, v)
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		return appendLean(b, v.Elem())
	case reflect.String:
		return appendText(b, v.String())
	case reflect.Bool:
		return strconv.AppendBool(b, v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.AppendInt(b, v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.AppendUint(b, v.Uint(), 10), nil
	case reflect.Slice:
		if v.IsNil() || t.Elem().Kind() == reflect.Uint8 {
			return appendJSON(b, v)
		}
		return appendList(b, v)
	case reflect.Struct:
		if fields := fieldsOf(t); fields != nil {
			return appendFields(b, v, fields)
		}
	}
	return appendJSON(b, v)
}

func appendList(b []byte, v reflect.Value) (_ []byte, err error) {
	b = append(b, '[')
	for i := range v.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendLean(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendFields(b []byte, v reflect.Value, fields []leanField) (_ []byte, err error) {
	b = append(b, '{')
	first := true
	for _, f := range fields {
		field := v.FieldByIndex(f.index)
		if holdsNothing(field) || f.empty && field.Kind() == reflect.Slice && field.Len() == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		if b, err = appendLean(append(b, f.name...), field); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

func holdsNothing(v reflect.Value) bool {
	if v.Type() == timeType {
		return v.Interface().(time.Time).IsZero() // in whichever place
	}
	return v.IsZero()
}

// appendText takes what needs no escape by the shorter way.
func appendText(b []byte, s string) ([]byte, error) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return appendJSON(b, reflect.ValueOf(s))
		}
	}
	return append(append(append(b, '"'), s...), '"'), nil
}

// appendJSON leaves < and > as they are: this goes into no page.
func appendJSON(b []byte, v reflect.Value) ([]byte, error) {
	out := bytes.NewBuffer(b)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v.Interface()); err != nil {
		return nil, fmt.Errorf("encode a %s: %w", v.Type(), err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func fieldsOf(t reflect.Type) []leanField {
	if known, ok := leanFields.Load(t); ok {
		return known.([]leanField)
	}
	fields := listFields(t, nil, map[string]bool{})
	leanFields.Store(t, fields)
	return fields
}

// listFields is nil where encoding/json has rules of its own: options that change a
// value, a name that is there twice, what is embedded by a pointer.
func listFields(t reflect.Type, at []int, seen map[string]bool) []leanField {
	fields := []leanField{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(slices.Clone(at), i)
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			inner := listFields(f.Type, index, seen)
			if inner == nil {
				return nil
			}
			fields = append(fields, inner...)
			continue
		case f.Anonymous:
			return nil
		case !f.IsExported() || name == "-" && options == "":
			continue
		case name == "":
			name = f.Name
		}
		if seen[strings.ToLower(name)] || options != "" && options != "omitempty" && options != "omitzero" {
			return nil
		}
		seen[strings.ToLower(name)] = true
		fields = append(fields, leanField{index: index, name: strconv.Quote(name) + ":", empty: options == "omitempty"})
	}
	return fields
}
