package vault

// InsertSubjectKeys is how new keys are stored.
const InsertSubjectKeys = insertSubjectKeys

// ExpireSubjects lets the time pass after which a vault looks at a subject's key again.
func ExpireSubjects(v *Vault) {
	for _, name := range v.subjects.cache.Keys() {
		key, _ := v.subjects.cache.Get(name)
		key.expires = key.expires.Add(-2 * cacheFor)
		v.subjects.cache.Add(name, key)
	}
}
