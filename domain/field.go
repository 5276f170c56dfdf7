package domain

// Field is a setting in a change: not mentioned, cleared (Set, Value nil), or given.
type Field[T any] struct {
	Set   bool
	Value *T
}

// Or is the setting after the change of an old one.
func (f Field[T]) Or(old *T) *T {
	if f.Set {
		return f.Value
	}
	return old
}

// Same compares the values of two settings, not the pointers.
func Same[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
