package consumer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"humanqa/domain"
	"humanqa/eventstore"
	"humanqa/eventstore/generation"
)

const listenerName = "humanqa waits"

// newsOf is the message on generation.Channel about projections that reached a place: its
// columns, their names, and a seal, separated by blanks. Every role of the database may
// notify and listen. So the seal is made with the owner of the first projection's lease,
// which only readers of the checkpoints know.
func newsOf(owner string, to eventstore.Checkpoint, names ...string) string {
	commit, prepare := generation.PositionColumns(to)
	news := fmt.Sprintf("%d %d %s", commit, prepare, strings.Join(names, " "))
	return news + " " + sealOf(owner, news)
}

func sealOf(owner, news string) string {
	seal := hmac.New(sha256.New, []byte(owner))
	_, _ = seal.Write([]byte(news)) // never fails
	return hex.EncodeToString(seal.Sum(nil))
}

// acceptNews takes a message of newsOf. After any other message (a new connection, another
// owner, a process of an older version) the checkpoints are polled.
func (t *progressTracker) acceptNews(news string) (taken bool) {
	names, at, known := t.parseNews(news)
	t.hears.Store(known)
	for _, name := range names {
		t.noteProgress(name, at)
	}
	return known
}

// parseNews reads a message of newsOf; known is false if its seal does not fit.
func (t *progressTracker) parseNews(news string) (names []string, at eventstore.Checkpoint, known bool) {
	body, seal := news[:max(strings.LastIndexByte(news, ' '), 0)], news[strings.LastIndexByte(news, ' ')+1:]
	fields := strings.Fields(body)
	if len(fields) < 3 {
		return nil, at, false
	}
	commit, errCommit := strconv.ParseUint(fields[0], 10, 64)
	prepare, errPrepare := strconv.ParseUint(fields[1], 10, 64)
	owner := t.ownerOf(fields[2])
	if errCommit != nil || errPrepare != nil || owner == "" || !hmac.Equal([]byte(seal), []byte(sealOf(owner, body))) {
		return nil, at, false
	}
	return fields[2:], eventstore.At(domain.Position{Commit: commit, Prepare: prepare}), true
}

// setOwner notes the owner of a projection's lease.
func (t *progressTracker) setOwner(name, owner string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.each[name]; one != nil && owner != "" {
		one.owner = owner
	}
}

func (t *progressTracker) ownerOf(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one := t.each[name]; one != nil {
		return one.owner
	}
	return ""
}
