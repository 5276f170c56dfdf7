package eventstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore/freetext"
)

// Free texts of a job or a checker are sealed under a key of that subject, so that it can
// be erased alone (decisions, "Erasure of one subject"). Events that were written before
// stay as they are.

// EachText calls each for every text of an event's JSON in the clear that the log holds
// sealed, in the JSON's own spelling.
func EachText(eventType string, data []byte, each func(quoted []byte)) {
	freetext.Each(registry[eventType].Sealed, data, each)
}

// EraseTexts gives an event's JSON in the clear as it would read with its texts sealed and
// their key destroyed.
func EraseTexts(eventType string, data []byte) []byte {
	return freetext.Erase(registry[eventType].Sealed, data)
}

// sealTexts moves the free texts of an event into its first field, sealed.
func (c *Client) sealTexts(ctx context.Context, stream string, e domain.NewEvent, data []byte) ([]byte, error) {
	if c.sealer == nil {
		return data, nil
	}
	eventType := e.Event.EventType()
	taken, found := freetext.Take(registry[eventType].Sealed, data)
	if !found {
		return data, nil
	}
	accountID := e.Meta.AccountID
	if created, ok := e.Event.(*job.Created); ok {
		accountID = created.AccountID
	}
	sealed, err := c.sealer.SealText(ctx, stream, accountID, taken.Plain)
	switch {
	case errors.Is(err, domain.ErrShredded):
		return nil, domain.Conflict("%s was erased", stream)
	case err != nil:
		return nil, domain.Unavailable(fmt.Errorf("seal the texts of %s: %w", eventType, err))
	}
	return taken.With(sealed), nil
}

var errTexts = errors.New("its texts do not open, or are not as many as it has marks")

// openTexts gives the JSON with its texts in their places, and the salted texts as the sum
// binds them; nil where nothing is sealed. The texts of an erased subject read
// domain.ErasedText, and its links are empty. With a lost key they read domain.HiddenText.
func (c *Client) openTexts(ctx context.Context, stream, eventType string, data []byte) (whole, plain []byte, err error) {
	sealed := freetext.Sealed(data)
	if sealed == nil || c.sealer == nil {
		return nil, nil, nil
	}
	var ok bool
	switch plain, err = c.sealer.OpenText(ctx, stream, sealed); {
	case err == nil:
		whole, ok = freetext.Put(data, plain)
	case errors.Is(err, domain.ErrShredded):
		plain = nil
		whole, ok = freetext.Instead(data, domain.ErasedText)
	case errors.Is(err, domain.ErrKeyLost):
		plain = nil
		whole, ok = freetext.Instead(data, domain.HiddenText)
	case !errors.Is(err, domain.ErrUnsealable):
		return nil, nil, fmt.Errorf("open the texts of %s: %w", eventType, err)
	}
	if !ok {
		return []byte(errTexts.Error()), nil, nil // no JSON: Decode refuses it
	}
	return whole, plain, nil
}

// Proved gives the stored data of an event, and its texts with their salt, as a proof for
// their account shows both. told is false where the data hold other sealed or withheld
// fields than texts. Erased texts are nil.
func Proved(e RawEvent, withheld map[string]string) (data, plain []byte, told bool) {
	bare := e.Data
	if freetext.Sealed(e.Data) != nil {
		bare = freetext.Bare(e.Data)
	}
	return e.Data, e.texts, bytes.Equal(RedactBy(e.Type, bare, domain.HiddenText, withheld), bare)
}

// expect loads the keys of a page's texts before they are opened, with one query for all.
func (c *Client) expect(ctx context.Context, page []*esdb.RecordedEvent) error {
	if c.sealer == nil {
		return nil
	}
	var subjects []string
	last := ""
	for _, e := range page {
		// A large event's data stand elsewhere; its stream has smaller ones, too.
		if e.StreamID != last && freetext.Sealed(e.Data) != nil {
			last = e.StreamID
			subjects = append(subjects, last)
		}
	}
	if len(subjects) < 2 {
		return nil
	}
	if err := c.sealer.Expect(ctx, subjects); err != nil {
		return fmt.Errorf("read the keys of texts: %w", err)
	}
	return nil
}

// TextsClosed says that the event has texts whose key was lost.
func TextsClosed(e RawEvent) bool {
	return TextsSealed(e) && e.texts == nil && bytes.Contains(e.Whole(), []byte(`"`+domain.HiddenText+`"`))
}

// TextsSealed says that the event's texts, if there are any, are sealed.
func TextsSealed(e RawEvent) bool {
	if e.partsMeta().Parts > 0 {
		return e.sealedParts
	}
	return freetext.Sealed(e.Data) != nil
}
