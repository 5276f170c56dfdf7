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
)

const (
	// checkpointsChannel is told of checkpoints that moved (newsOf), in the transaction
	// that moves them, while a process with a connection of listenerName waits
	// for consumers that run elsewhere. Nobody else pays for it: Postgres commits
	// the transactions that notify one after the other.
	checkpointsChannel = "humanqa_checkpoints"
	listenerName       = "humanqa waits"
)

// newsOf is what checkpointsChannel is told of projections that got to a place: its
// columns, their names, and a seal, all parted by blanks. Every role of the database
// may notify and listen; the seal is made with the owner of the first one's lease,
// which only who may read the checkpoints knows.
func newsOf(owner string, to eventstore.Checkpoint, names ...string) string {
	commit, prepare := columns(to)
	news := fmt.Sprintf("%d %d %s", commit, prepare, strings.Join(names, " "))
	return news + " " + sealOf(owner, news)
}

func sealOf(owner, news string) string {
	seal := hmac.New(sha256.New, []byte(owner))
	_, _ = seal.Write([]byte(news)) // never fails
	return hex.EncodeToString(seal.Sum(nil))
}

// told takes what newsOf says. Whatever else comes has the checkpoints looked at: a new
// connection, another owner, a process of an older version.
func (a *arrivals) told(news string) (taken bool) {
	names, at, known := a.read(news)
	a.hears.Store(known)
	for _, name := range names {
		a.advance(name, at)
	}
	return known
}

// read gives what the news say, if they are to be believed.
func (a *arrivals) read(news string) (names []string, at eventstore.Checkpoint, known bool) {
	body, seal := news[:max(strings.LastIndexByte(news, ' '), 0)], news[strings.LastIndexByte(news, ' ')+1:]
	fields := strings.Fields(body)
	if len(fields) < 3 {
		return nil, at, false
	}
	commit, errCommit := strconv.ParseUint(fields[0], 10, 64)
	prepare, errPrepare := strconv.ParseUint(fields[1], 10, 64)
	owner := a.ownerOf(fields[2])
	if errCommit != nil || errPrepare != nil || owner == "" || !hmac.Equal([]byte(seal), []byte(sealOf(owner, body))) {
		return nil, at, false
	}
	return fields[2:], eventstore.At(domain.Position{Commit: commit, Prepare: prepare}), true
}

// ownedBy notes whose lease a projection's is.
func (a *arrivals) ownedBy(name string, owner *string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.each[name]; one != nil && owner != nil {
		one.owner = *owner
	}
}

func (a *arrivals) ownerOf(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if one := a.each[name]; one != nil {
		return one.owner
	}
	return ""
}
