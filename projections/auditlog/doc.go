// Package auditlog proves that the log is unchanged. It keeps a Merkle tree over $all,
// hashed as in RFC 6962, and signs its root in every minute with new events. The owner
// of one signed checkpoint can later find out whether any event before it was changed,
// dropped, inserted or moved.
//
// # Leaves
//
// A leaf binds the stored facts of one event (Leaf.Text). They are stream, revision,
// type, id, the log's own time, the kind of data (JSON or not), and the SHA-256 of data
// and of metadata. It binds hashes of the bytes, not the bytes themselves, so a proof
// needs no secret. An export can leave a sealed field out. Erasing an account destroys
// the key of its secrets and no event, so it changes no leaf. The order of events is the
// leaf's place in the tree. Events of the node itself ($…) are no leaves: a server may
// drop those by itself.
//
// # The tree
//
// The projector "audit" folds the log into two tables. One, tree_leaves, has the
// content of each leaf, to name a difference. The other, tree_tiles, has the hashes, 256
// to a row (the layout of golang.org/x/mod/sumdb/tlog). It is a consumer like the read models: a
// batch moves tiles, leaves and checkpoint in one transaction. It sees every event,
// also of unknown types and undecodable ones, and decodes none. The index of the ids is one
// of Bloom filters. A million events cost less processor time here than reading them
// does.
//
// # Checkpoints
//
// A checkpoint is a signed note (golang.org/x/mod/sumdb/note): the log's name, the
// number of leaves, the root, the position and the time. The Keeper signs one a minute
// while events arrive, and Sign does on demand. Before it signs, it reads from the log
// itself the events since the newest checkpoint. The tree must continue that checkpoint
// with exactly these events, and each of them needs its MAC (vouch.go). So a log that
// was rewritten together with its tree gets no further signature, and the service's log
// says so every minute. The signing key is sealed under the master keyset, so write
// access to the database alone cannot sign.
//
// Such access cannot insert an event that gets signed, either. Each event carries a MAC
// (eventstore/mac.go) under a key derived from the master keyset, from the event on that
// names the signing key in the log (domain/origin). The database's own record of
// checkpoints and findings helps against their loss. It does not help against an attacker
// with write access to it.
//
// # Checks
//
// Check reads the log once, in constant memory, and hashes it anew. It compares the
// roots with every stored checkpoint and with those from outside. It compares the
// events with tree_leaves, which names the very event and field. If events and tree
// were both rewritten, the signatures show between which two checkpoints.
//
// Events after the newest checkpoint outside the machine are as trustworthy as the
// machine. An attacker with the machine and its keyset can rewrite them and sign them.
package auditlog
