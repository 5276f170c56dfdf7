// Package kurrentdb_test tests the embedded node with KurrentDB-Client-Go, which succeeds
// EventStore-Client-Go. It also tests the habits of that client on which eventstore/gate.go relies.
package kurrentdb_test

import (
	"errors"
	"flag"
	"io"
	"testing"

	"github.com/google/uuid"
	"github.com/kurrent-io/KurrentDB-Client-Go/kurrentdb"
)

var address = flag.String("node", "", "the address of an empty node, with its password; see make contract")

func settings(t *testing.T) *kurrentdb.Configuration {
	t.Helper()
	config, err := kurrentdb.ParseConnectionString(*address)
	noError(t, err)
	config.Logger = kurrentdb.NoopLogging()
	return config
}

func connect(t *testing.T, config *kurrentdb.Configuration) *kurrentdb.Client {
	t.Helper()
	client, err := kurrentdb.NewClient(config)
	noError(t, err)
	t.Cleanup(func() { noError(t, client.Close()) })
	return client
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func event(kind string) kurrentdb.EventData {
	return kurrentdb.EventData{EventID: uuid.New(), EventType: kind, ContentType: kurrentdb.ContentTypeJson, Data: []byte(`{"n":1}`)}
}

func code(err error) kurrentdb.ErrorCode {
	if e := (*kurrentdb.Error)(nil); errors.As(err, &e) {
		return e.Code()
	}
	return -1
}

// types lists the types of a read's events.
func types(read *kurrentdb.ReadStream, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer read.Close()
	var out []string
	for {
		e, err := read.Recv()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, e.Event.EventType)
	}
}
