package eventstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"humanqa/domain"
)

// personal names the fields of events that are a customer's own words. The log holds
// them under the account's data key, so that they go with it (decisions, "Erasure").
// Readers of events get them in the clear. Events written before stay as they are.
var personal = map[string][]string{
	"account.created":    {"name"},
	"account.key_issued": {"name"},
}

// sealedField holds the personal fields of an event, as one sealed JSON object.
const sealedField = "sealed"

// Sealer seals texts: package internal/vault. A text sealed under a key that is gone
// gives domain.ErrShredded. A text that is damaged, or was not sealed for this stream,
// gives domain.ErrUnsealable. Any other error may pass.
type Sealer interface {
	Seal(ctx context.Context, accountID, stream string, plaintext []byte) (string, error)
	Unseal(ctx context.Context, accountID, stream, sealed string) ([]byte, error)
	// SealText and OpenText use a key of the subject. Expect loads such keys ahead.
	SealText(ctx context.Context, subject, accountID string, plaintext []byte) (string, error)
	OpenText(ctx context.Context, subject string, sealed []byte) ([]byte, error)
	Expect(ctx context.Context, subjects []string) error
}

// SealWith makes the client seal personal texts. It is called before the client is
// used. A client without a sealer writes them in the clear, and reads domain.HiddenText.
func (c *Client) SealWith(s Sealer) { c.sealer = s }

// ownerOf is the account that the personal fields of a stream's events belong to.
func ownerOf(stream string) string { return strings.TrimPrefix(stream, domain.AccountStreams) }

// sealedFor binds the texts to their stream, and keeps them apart from its secrets.
func sealedFor(stream string) string { return stream + " texts" }

// seal takes the personal fields out of an event's JSON, and puts them in sealed.
func (c *Client) seal(ctx context.Context, stream, eventType string, data []byte) ([]byte, error) {
	names := personal[eventType]
	if names == nil || c.sealer == nil {
		return data, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	texts := make(map[string]json.RawMessage, len(names))
	for _, name := range names {
		if text, there := fields[name]; there {
			texts[name] = text
			delete(fields, name)
		}
	}
	if len(texts) == 0 {
		return data, nil
	}
	plain, err := domain.EncodeJSON(texts)
	if err != nil {
		return nil, err
	}
	sealed, err := c.sealer.Seal(ctx, ownerOf(stream), sealedFor(stream), plain)
	if err != nil {
		return nil, domain.Unavailable(fmt.Errorf("seal the texts of %s: %w", eventType, err))
	}
	if fields[sealedField], err = domain.EncodeJSON(sealed); err != nil {
		return nil, err
	}
	return domain.EncodeJSON(fields)
}

// unseal gives the JSON with its personal fields; nil where there is nothing to open.
// The fields of an erased account hold domain.ErasedText. Damaged texts are not passed over:
// they become text that Decode refuses.
func (c *Client) unseal(ctx context.Context, stream, eventType string, data []byte) ([]byte, error) {
	names := personal[eventType]
	if names == nil {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	var sealed string
	if json.Unmarshal(data, &fields) != nil || json.Unmarshal(fields[sealedField], &sealed) != nil {
		return nil, nil //nolint:nilerr // it was written before, or Decode refuses it
	}
	texts, err := c.openFields(ctx, stream, sealed, names)
	if err != nil {
		return nil, fmt.Errorf("open the texts of %s: %w", eventType, err)
	}
	delete(fields, sealedField)
	if json.Unmarshal(texts, &fields) != nil {
		return texts, nil //nolint:nilerr // damaged: Decode refuses them
	}
	return domain.EncodeJSON(fields)
}

// openFields gives the sealed fields as a JSON object. Fields that cannot be opened any
// more hold domain.ErasedText, or domain.HiddenText without a sealer. Damaged fields become text that is no JSON.
func (c *Client) openFields(ctx context.Context, stream, sealed string, names []string) ([]byte, error) {
	words := domain.HiddenText
	if c.sealer != nil {
		plain, err := c.sealer.Unseal(ctx, ownerOf(stream), sealedFor(stream), sealed)
		if errors.Is(err, domain.ErrUnsealable) {
			plain, err = []byte("texts that do not open"), nil
		}
		if !errors.Is(err, domain.ErrShredded) {
			return plain, err
		}
		words = domain.ErasedText
	}
	fields := make(map[string]string, len(names))
	for _, name := range names {
		fields[name] = words
	}
	return domain.EncodeJSON(fields)
}
