// Package auditlog proves that the log is the one that was: a Merkle tree over
// $all, hashed as in RFC 6962, whose root is signed every minute there is
// something new. Whoever keeps one signed checkpoint can later find out whether
// any event before it was changed, dropped, put in or moved.
//
// # Leaves
//
// A leaf binds what the log stores of one event: stream, revision, type, id, the
// log's own time, whether the data are JSON, and the SHA-256 of data and of metadata
// (Leaf.Text). It binds
// hashes of the bytes and not the bytes, so that a proof stands without showing
// a secret: a sealed field can be left out of an export, and erasing an account,
// which destroys the key of its secrets and no event, changes no leaf. The order
// of events is the leaf's place in the tree. Events of the node itself ($…) are
// no leaves: a server may drop those of its own accord.
//
// # The tree
//
// The projector "audit" folds the log into two tables: tree_leaves, what each
// leaf binds, by which a difference can be named, and tree_tiles, the hashes, 256
// to a row (the layout of golang.org/x/mod/sumdb/tlog). It is a consumer like
// the read models: a batch moves tiles, leaves and checkpoint in one transaction.
// It sees every event, also of unknown types and such as nobody can decode, and
// has none decoded for itself. The leaves are copied in at the end of their table
// while their hashes are made, and the index of the ids is one of Bloom filters:
// a million events take the processors less than reading them does.
//
// # Checkpoints
//
// A checkpoint is a signed note (golang.org/x/mod/sumdb/note): the log's name,
// how many leaves, the root, the position and the time. The Keeper signs one a
// minute while something happens, and Sign does on demand. Before it signs, the
// tree has to continue the newest checkpoint, by what the log itself holds behind
// that (vouch.go): a log that was rewritten, and its
// tree with it, gets no further signature, and the service's log tells so
// every minute. The signing key is sealed under the master keyset: who can write
// to the database only cannot sign.
//
// Nor can it write an event that is signed: each carries a MAC under a key derived from
// the master keyset, from the event on that names the signing key in the log
// (domain/origin). What the database remembers of checkpoints and findings is for those
// who lose them, not against whoever rewrites it.
//
// # What is found
//
// Check reads the log once and hashes it anew. Its roots are held against every
// checkpoint that is stored and against those that somebody kept; its events
// against tree_leaves, which names the very event and field. If events and tree
// were both rewritten, the signatures say between which two checkpoints.
//
// What happened after the newest checkpoint that somebody else keeps is as
// trustworthy as the machine: who has the machine, with its keyset, can rewrite
// that and sign it.
package auditlog
