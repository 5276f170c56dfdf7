package history

import "slices"

// shown is a value of the log, with the versions that the read models may show. It is not
// changed in place: each step makes a new one.
type shown[T comparable] struct {
	values []T    // of the log; the first is the one that was seen last, or owed last
	first  int    // number of values before it
	marks  []mark // writes that owe their visibility, with no answer yet
}

type mark struct{ id, at int }

func showing[T comparable](v T) shown[T] { return shown[T]{values: []T{v}} }

func (s shown[T]) equal(o shown[T]) bool {
	return s.first == o.first && slices.Equal(s.values, o.values) && slices.Equal(s.marks, o.marks)
}

// last is the log's own value.
func (s shown[T]) last() T { return s.values[len(s.values)-1] }

// write adds a value to the log.
func (s shown[T]) write(v T) shown[T] {
	s.values = append(slices.Clone(s.values), v)
	return s
}

// owe notes that a write, which stands in the log by now, must be visible before its answer.
// Zero is a write that owes nothing.
func (s shown[T]) owe(id int) shown[T] {
	if id != 0 {
		s.marks = append(slices.Clone(s.marks), mark{id, s.first + len(s.values) - 1})
		slices.SortFunc(s.marks, func(a, b mark) int { return a.id - b.id })
	}
	return s
}

// pay says that the read models show a write. It is false before the write.
func (s shown[T]) pay(id int) (bool, shown[T]) {
	i := slices.IndexFunc(s.marks, func(m mark) bool { return m.id == id })
	if i < 0 {
		return false, s
	}
	at := s.marks[i].at
	s.marks = slices.Delete(slices.Clone(s.marks), i, i+1)
	return true, s.from(at - s.first)
}

// read says whether the read models may show the value. Of several places in the log the
// earliest is taken: it leaves later reads the most.
func (s shown[T]) read(v T) (bool, shown[T]) {
	i := slices.Index(s.values, v)
	if i < 0 {
		return false, s
	}
	return true, s.from(i)
}

// from drops the values that no later read may show.
func (s shown[T]) from(i int) shown[T] {
	if i > 0 {
		s.values = s.values[i:]
		s.first += i
	}
	return s
}
