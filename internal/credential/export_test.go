package credential

// HoldHashing takes every place for hashing, until release is called.
func (s *Store) HoldHashing() (release func()) {
	for range cap(s.hashing) {
		s.hashing <- struct{}{}
	}
	return func() {
		for range cap(s.hashing) {
			<-s.hashing
		}
	}
}
