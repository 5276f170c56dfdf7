package auditlog

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"golang.org/x/mod/sumdb/tlog"

	"humanqa/domain"
)

// BoundEvent is an event in a proof or an export: all facts that its leaf binds. Data and
// Meta are the bytes as the log stores them. If they hold a sealed secret they are left
// out, and only their hashes remain.
type BoundEvent struct {
	Index    int64     `json:"index"`
	Position string    `json:"position"` // commit/prepare; no part of the leaf
	Stream   string    `json:"stream"`
	Revision uint64    `json:"revision"`
	Type     string    `json:"type"`
	ID       uuid.UUID `json:"id"`
	Created  string    `json:"created"` // 100 ns since 1970, in decimal
	DataHash string    `json:"dataHash"`
	MetaHash string    `json:"metaHash"`
	// ContentType is the type of the data, if they are not JSON.
	ContentType string  `json:"contentType,omitempty"`
	Data        *string `json:"data,omitempty"`
	// Texts are the texts that are sealed in Data: a salt, and then each text as JSON, a
	// line each.
	Texts *string `json:"texts,omitempty"`
	Meta  *string `json:"meta,omitempty"`
	// Leaf is the hash of this leaf in the service's tree, in an export.
	Leaf string `json:"leaf,omitempty"`
}

func bound(l Leaf) BoundEvent {
	contentType := ""
	if l.Binary {
		contentType = binaryContent
	}
	return BoundEvent{
		ContentType: contentType,
		Index:       l.Index, Position: l.Position.String(), Stream: l.Stream, Revision: l.Revision, Type: l.Type, ID: l.ID,
		Created: strconv.FormatInt(ticks(l.Created), 10), DataHash: hex.EncodeToString(l.Data[:]), MetaHash: hex.EncodeToString(l.Meta[:]),
	}
}

// Proof shows, together with the log's verifier key, that an event is in the
// log: the audit path of RFC 6962, from the leaf up.
type Proof struct {
	Event      BoundEvent `json:"event"`
	Path       []string   `json:"path"` // base64
	Checkpoint string     `json:"checkpoint"`
}

// Prove proves that an event is one of a checkpoint's.
func Prove(ctx context.Context, tree Tree, id uuid.UUID, in Checkpoint) (Proof, error) {
	l, found, err := tree.Find(ctx, id)
	switch {
	case err != nil:
		return Proof{}, err
	case !found:
		return Proof{}, domain.NotFound("event " + id.String()).WithHint(
			"an event that was written just now is in the tree within a second")
	case l.Index >= in.Size:
		return Proof{}, fmt.Errorf("event %s came behind the checkpoint of %s: use a newer one", id, in)
	}
	path, err := tree.Inclusion(ctx, in.Size, l.Index)
	if err != nil {
		return Proof{}, err
	}
	if err := tlog.CheckRecord(path, in.Size, in.Root, l.Index, l.Hash()); err != nil {
		return Proof{}, errors.Join(fmt.Errorf("the tree does not prove %s in the checkpoint of %s: look with humanqa audit verify", l, in),
			err)
	}
	proof := Proof{Event: bound(l), Path: make([]string, len(path)), Checkpoint: in.Note}
	for i, h := range path {
		proof.Path[i] = base64.StdEncoding.EncodeToString(h[:])
	}
	return proof, nil
}
