package auditlog

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/tlog"

	"humanqa/eventstore"
)

// exportFormat starts an export.
const exportFormat = "humanqa-log-1"

// exportHead is the first line of an export.
type exportHead struct {
	Format   string `json:"format"`
	Verifier string `json:"verifier"` // for a check, use a verifier from another source
	Size     int64  `json:"size"`
}

// exportLine is any other one: an event, or a checkpoint of the events so far.
type exportLine struct {
	Event      *BoundEvent `json:"event,omitempty"`
	Checkpoint string      `json:"checkpoint,omitempty"`
}

// exportPage is how many events are in memory at a time.
const exportPage = 1000

// Each calls see for every event of the log, in order.
func Each(ctx context.Context, log *eventstore.Client, see func(eventstore.RawEvent) error) error {
	at := eventstore.Checkpoint{Start: true}
	for end := false; !end; {
		page, next, last, err := log.ReadAllRaw(ctx, at.Position, at.Start, exportPage)
		if err != nil {
			return fmt.Errorf("read the log behind %s: %w", at.Position, err)
		}
		for _, e := range page {
			if err := see(e); err != nil {
				return err
			}
		}
		at, end = eventstore.At(next), last
	}
	return nil
}

// Export writes the log up to a checkpoint as lines of JSON, for verification without
// the service. They are a head, the events, and each checkpoint behind its last event.
// Memory does not grow with the log.
func Export(ctx context.Context, s *Signer, upTo Checkpoint, out io.Writer) (events int64, err error) {
	verifier, err := s.Verifier(ctx)
	if err != nil {
		return 0, err
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(exportHead{Format: exportFormat, Verifier: verifier, Size: upTo.Size}); err != nil {
		return 0, err
	}
	tree := NewTree(s.db)
	notes, err := storedNotes(ctx, s.db, 0)
	if err != nil {
		return 0, err
	}
	var hashes []byte
	full := fmt.Errorf("the checkpoint ends here")
	err = Each(ctx, s.log, func(e eventstore.RawEvent) error {
		if events == upTo.Size {
			return full
		}
		if events%tileWidth == 0 {
			if hashes, err = tree.leafHashes(ctx, events/tileWidth); err != nil {
				return err
			}
		}
		line := bound(leafOf(e.Recorded()))
		line.Index = events
		if at := int(events%tileWidth) * tlog.HashSize; at+tlog.HashSize <= len(hashes) {
			line.Leaf = base64.StdEncoding.EncodeToString(hashes[at : at+tlog.HashSize])
		}
		if utf8.Valid(e.Data) && utf8.Valid(e.Meta) && string(eventstore.Redact(e.Type, e.Data)) == string(e.Data) {
			data, meta := string(e.Data), string(e.Meta)
			line.Data, line.Meta = &data, &meta
		}
		if err := enc.Encode(exportLine{Event: &line}); err != nil {
			return err
		}
		events++
		for len(notes) > 0 && notes[0].Size <= events {
			if err := enc.Encode(exportLine{Checkpoint: notes[0].Note}); err != nil {
				return err
			}
			if len(notes) == 1 {
				if notes, err = storedNotes(ctx, s.db, notes[0].Size); err != nil {
					return err
				}
				continue
			}
			notes = notes[1:]
		}
		return nil
	})
	if err == full { //nolint:errorlint // our own, unwrapped
		err = nil
	}
	return events, err
}
