package vault

// InsertSubjectKeys is how new keys are stored.
const InsertSubjectKeys = insertSubjectKeys

// LockRotation is how a rotation keeps others away.
const LockRotation = lockRotation

// ExpireSubjects lets the time pass after which a vault looks at a subject's key again.
func ExpireSubjects(v *Vault) {
	for _, name := range v.subjects.cache.Keys() {
		key, _ := v.subjects.cache.Get(name)
		key.expires = key.expires.Add(-2 * cacheFor)
		v.subjects.cache.Add(name, key)
	}
}

// WrapFor wraps a key as that of a subject.
func WrapFor(v *Vault, subject string) ([]byte, error) {
	return v.master.Encrypt(make([]byte, subjectKeySize), subjectContext(subject))
}

// Opens says whether a wrapped key opens.
func Opens(v *Vault, subject string, wrapped []byte) error {
	_, err := v.master.Decrypt(wrapped, subjectContext(subject))
	return err
}
