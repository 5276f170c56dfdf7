package repository

import (
	"reflect"
	"time"
)

// sizeOf estimates how many bytes of memory a value holds, with all that it points to.
// Memory that two of its fields share is counted twice.
func sizeOf[S any](value *S) int {
	v := reflect.ValueOf(value).Elem()
	return int(v.Type().Size()) + beyond(v)
}

var timeType = reflect.TypeFor[time.Time]()

// beyond is the size of everything that a value points to.
func beyond(v reflect.Value) (bytes int) {
	switch v.Kind() {
	case reflect.String:
		return allocated(v.Len())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			bytes = allocated(int(v.Elem().Type().Size())) + beyond(v.Elem())
		}
	case reflect.Slice:
		bytes = allocated(v.Cap() * int(v.Type().Elem().Size()))
		for i := range v.Len() {
			bytes += beyond(v.Index(i))
		}
	case reflect.Map:
		// A map has room for more entries than it holds.
		entry := int(v.Type().Key().Size() + v.Type().Elem().Size())
		bytes = allocated(v.Len() * entry * 3 / 2)
		for entries := v.MapRange(); entries.Next(); {
			bytes += beyond(entries.Key()) + beyond(entries.Value())
		}
	case reflect.Struct:
		if v.Type() == timeType { // all times share the location
			return 0
		}
		for i := range v.NumField() {
			bytes += beyond(v.Field(i))
		}
	default: // the value points to nothing else
	}
	return bytes
}

// allocated is the memory that so many bytes take. The allocator rounds up to steps of 16
// bytes and more, and keeps a little for itself.
func allocated(bytes int) int { return (bytes + 15) &^ 15 }
