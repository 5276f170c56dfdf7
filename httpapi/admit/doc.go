// Package admit has the first checks of a request, and gives its command one identity.
//
//   - LoadLimit: the requests that a process works on at once. A request too many is refused
//     before its credential is looked up. It knows no account: one that has many keys, or a
//     stranger without one, can take the places of others.
//   - Callers: keys of accounts, of checkers, and tokens of deploy hooks. A token has
//     256 random bits and is stored as SHA-256.
//   - Limiter: the rate limit is one row per key, so it holds over all nodes. One
//     statement looks the key up and counts the request. Requests of one key that wait
//     at the same time share one look-up.
//   - Writer: the Idempotency-Key. The command's id is stored before the first write.
package admit
