package eventstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
	"humanqa/domain/origin"
)

// An original EventStoreDB takes 1 MiB of data in one append, unless it is set
// to more. The report of a job can be larger: a hundred items with long texts.
// The data of such an event is written before it, in parts in a stream of their
// own, and the event's metadata say so. Reads through this package give the
// event whole.
//
// A crash behind the parts leaves them without an event, which is harmless: the
// same append, sent again, finds them there.
const (
	// maxWhole bounds the data and metadata of one append, small events apart: no batch
	// of commands has enough of them to fill the rest of a mebibyte.
	maxWhole = 768 << 10
	// smallEvent is never moved into parts.
	smallEvent = 4 << 10
	// partSize is the size of a part in bytes, before base64.
	partSize = 512 << 10
)

// partsMeta is the part of the metadata of an event with its data in parts.
type partsMeta struct {
	Parts int    `json:"parts"`
	Hash  string `json:"hash"` // SHA-256 of the data, hex
}

// split moves the data of the largest events into parts until the rest fits one
// append.
func (c *Client) split(ctx context.Context, proposed []esdb.EventData) error {
	total := 0
	for _, e := range proposed {
		total += len(e.Data) + len(e.Metadata)
	}
	for total > maxWhole {
		largest := 0
		for i := range proposed {
			if len(proposed[i].Data) > len(proposed[largest].Data) {
				largest = i
			}
		}
		e := &proposed[largest]
		if len(e.Data) <= smallEvent {
			return nil
		}
		total -= len(e.Data) - len(emptyData)
		if err := c.storeParts(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

var emptyData = []byte("{}")

// storeParts writes an event's data, in parts, before the event itself.
func (c *Client) storeParts(ctx context.Context, e *esdb.EventData) error {
	var meta domain.Metadata
	if err := json.Unmarshal(e.Metadata, &meta); err != nil {
		return fmt.Errorf("read metadata: %w", err)
	}
	of := 0
	for part := range slices.Chunk(e.Data, partSize) {
		_, err := c.Append(ctx, origin.PartStream(e.EventID), domain.ExpectedRevision(of-1), []domain.NewEvent{{
			ID: domain.DeriveID(e.EventID, fmt.Sprint("part ", of)), Event: &origin.Part{Data: part}, Meta: meta,
		}})
		if err != nil {
			return fmt.Errorf("part %d: %w", of+1, err)
		}
		of++
	}
	sum := sha256.Sum256(e.Data)
	var err error
	e.Metadata, err = domain.EncodeJSON(struct {
		domain.Metadata
		partsMeta
	}{meta, partsMeta{of, hex.EncodeToString(sum[:])}})
	e.Data = emptyData
	return err
}

// whole is an event as it is stored, with the data that stand in parts and the
// texts that are sealed. Parts that are missing or changed are a *DecodeError.
func (c *Client) whole(ctx context.Context, e *esdb.RecordedEvent) (RawEvent, error) {
	r := raw(e)
	var err error
	if in := r.partsMeta(); in.Parts > 0 {
		if r, err = c.assembled(ctx, r, in); err != nil || r.data == nil {
			return r, err
		}
		open, _, err := c.openTexts(ctx, r.Stream, r.Type, r.data)
		if open != nil {
			r.data, r.sealedParts = open, true
		}
		return r, err
	}
	if r.data, r.texts, err = c.openTexts(ctx, r.Stream, r.Type, r.Data); r.data == nil && err == nil {
		r.data, err = c.unseal(ctx, r.Stream, r.Type, r.Data)
	}
	return r, err
}

func (c *Client) assembled(ctx context.Context, r RawEvent, in partsMeta) (RawEvent, error) {
	err := c.Load(ctx, origin.PartStream(r.ID), 0, func(p domain.Recorded) error {
		if part, ok := p.Event.(*origin.Part); ok && p.Revision < uint64(in.Parts) {
			r.data = append(r.data, part.Data...)
		}
		return nil
	})
	if _, ok := errors.AsType[*DecodeError](err); ok {
		r.data, err = nil, nil // a raw reader goes on, so that it can name the position
	}
	if err != nil {
		return RawEvent{}, fmt.Errorf("read the parts of %s at %s: %w", r.Type, r.Stream, err)
	}
	if sum := sha256.Sum256(r.data); hex.EncodeToString(sum[:]) != in.Hash {
		r.data = nil // Decode refuses it
	}
	return r, nil
}

func (r RawEvent) partsMeta() (in partsMeta) {
	if bytes.Contains(r.Meta, []byte(`"parts":`)) {
		_ = json.Unmarshal(r.Meta, &in) // Decode refuses unreadable metadata
	}
	return in
}

var errParts = errors.New("the event's data are in parts, which are missing or changed")

// Whole is the event's JSON, also if it stands in parts or is sealed; Data holds the bytes
// of the stored event itself.
func (r RawEvent) Whole() []byte {
	if r.data != nil {
		return r.data
	}
	return r.Data
}
