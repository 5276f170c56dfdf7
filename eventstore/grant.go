package eventstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"
)

// allMetadata is the stream of the metadata of $all, and admins the group that may do anything.
const (
	allMetadata = "$$$all"
	admins      = "$admins"
)

// Grant lets a user of the log's server read and subscribe to $all. The rest of the metadata
// of $all stays. It says whether anything was missing.
func (c *Client) Grant(ctx context.Context, user string) (granted bool, err error) {
	metadata, expected, err := c.allMetadata(ctx)
	if err != nil {
		return false, fmt.Errorf("read the metadata of $all: %w", err)
	}
	acl := map[string]json.RawMessage{}
	if set := metadata["$acl"]; set != nil {
		if err := json.Unmarshal(set, &acl); err != nil {
			return false, fmt.Errorf("the metadata of $all: $acl: %w", err)
		}
	}
	readers := []string{admins} // as without any metadata
	if set := acl["$r"]; set != nil {
		var one string
		if json.Unmarshal(set, &one) == nil {
			readers = []string{one}
		} else if err := json.Unmarshal(set, &readers); err != nil {
			return false, fmt.Errorf("the metadata of $all: $r: %w", err)
		}
	}
	if slices.Contains(readers, user) {
		return false, nil
	}
	if acl["$r"], err = json.Marshal(append(readers, user)); err != nil {
		return false, err
	}
	if metadata["$acl"], err = json.Marshal(acl); err != nil {
		return false, err
	}
	data, err := json.Marshal(metadata)
	if err != nil {
		return false, err
	}
	e := esdb.EventData{EventID: uuid.New(), EventType: "$metadata", ContentType: esdb.ContentTypeJson, Data: data}
	_, _, err = call(ctx, c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.WriteResult, error) {
		return client.AppendToStream(ctx, allMetadata, esdb.AppendToStreamOptions{ExpectedRevision: expected}, e)
	})
	if err != nil {
		return false, fmt.Errorf("write the metadata of $all: %w", err)
	}
	return true, nil
}

// allMetadata reads the metadata of $all, and the revision at which they stand.
func (c *Client) allMetadata(ctx context.Context) (map[string]json.RawMessage, esdb.ExpectedRevision, error) {
	last, _, err := call(ctx, c.connector(), func(ctx context.Context, client *esdb.Client) (*esdb.RecordedEvent, error) {
		read, err := client.ReadStream(ctx, allMetadata, esdb.ReadStreamOptions{From: esdb.End{}, Direction: esdb.Backwards}, 1)
		if err != nil {
			return nil, err
		}
		defer read.Close()
		e, err := read.Recv()
		if err != nil {
			return nil, err
		}
		return e.OriginalEvent(), nil
	})
	metadata := map[string]json.RawMessage{}
	switch {
	case err == nil:
		return metadata, esdb.Revision(last.EventNumber), json.Unmarshal(last.Data, &metadata)
	case classify(err) == classNoStream:
		return metadata, esdb.NoStream{}, nil
	}
	return nil, nil, err
}
