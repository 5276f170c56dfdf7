package generation

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

// News is the message on Channel about projections that reached a place: its columns, their
// names, and a seal, separated by blanks. Every role of the database may notify and listen.
// So the seal is made with the owner of the first projection's lease, which only readers of
// the checkpoints know.
func News(owner string, to eventstore.Checkpoint, names ...string) string {
	commit, prepare := PositionColumns(to)
	news := fmt.Sprintf("%d %d %s", commit, prepare, strings.Join(names, " "))
	return news + " " + sealOf(owner, news)
}

func sealOf(owner, news string) string {
	seal := hmac.New(sha256.New, []byte(owner))
	_, _ = seal.Write([]byte(news)) // never fails
	return hex.EncodeToString(seal.Sum(nil))
}

// ReadNews reads a message of News; known is false if its seal does not fit. ownerOf gives
// the owner of a projection's lease.
func ReadNews(news string, ownerOf func(name string) string) (names []string, at eventstore.Checkpoint, known bool) {
	body, seal := news[:max(strings.LastIndexByte(news, ' '), 0)], news[strings.LastIndexByte(news, ' ')+1:]
	fields := strings.Fields(body)
	if len(fields) < 3 {
		return nil, at, false
	}
	commit, errCommit := strconv.ParseUint(fields[0], 10, 64)
	prepare, errPrepare := strconv.ParseUint(fields[1], 10, 64)
	owner := ownerOf(fields[2])
	if errCommit != nil || errPrepare != nil || owner == "" || !hmac.Equal([]byte(seal), []byte(sealOf(owner, body))) {
		return nil, at, false
	}
	return fields[2:], eventstore.At(domain.Position{Commit: commit, Prepare: prepare}), true
}
