package credential

import "golang.org/x/crypto/argon2"

// HashAsItIs hashes a password as older versions did.
func (s *Store) HashAsItIs(password string) string {
	salt := make([]byte, saltBytes)
	return s.encoded(salt, argon2.IDKey([]byte(password), salt, argonTime, s.memory, argonThreads, hashBytes))
}

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
