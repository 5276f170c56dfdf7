package consumer

import (
	"cmp"

	"humanqa/eventstore/generation"
)

const listenerName = "humanqa waits"

// acceptNews takes a message of generation.News. After any other message (a new connection, another
// owner, a process of an older version) the checkpoints are polled.
func (t *progressTracker) acceptNews(news string) (taken bool) {
	names, at, known := generation.ReadNews(news, t.ownerOf)
	t.hears.Store(known)
	for _, name := range names {
		t.noteProgress(name, at)
	}
	return known
}

// setOwner notes the owner of a projection's lease.
func (t *progressTracker) setOwner(name, owner string) {
	t.update(name, func(one *progress) { one.owner = cmp.Or(owner, one.owner) })
}

func (t *progressTracker) ownerOf(name string) (owner string) {
	t.update(name, func(one *progress) { owner = one.owner })
	return owner
}
