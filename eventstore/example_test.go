package eventstore_test

import (
	"fmt"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/job"
	"humanqa/eventstore"
)

// An event is stored as JSON under its stable name. A newer log may hold types
// that this binary does not know: they are no error, and no event.
func ExampleDecode() {
	data, meta, err := eventstore.Encode(domain.NewEvent{
		ID: uuid.New(), Event: &job.Cancelled{Reason: job.CancelClient, Refund: 5}, Meta: domain.Metadata{Actor: "key:k", AccountID: "acme"},
	})
	fmt.Println(string(data), err)

	event, about, err := eventstore.Decode("job.cancelled", data, meta)
	fmt.Printf("%T by %s of %s, %v\n", event, about.Actor, about.AccountID, err)
	event, _, err = eventstore.Decode("job.from_the_future", data, meta)
	fmt.Println(event, err)
	_, _, err = eventstore.Decode("job.cancelled", []byte(`{"refund": "five"}`), meta)
	fmt.Println(err)
	// Output:
	// {"reason":"client","refund":5,"at":"0001-01-01T00:00:00Z"} <nil>
	// *job.Cancelled by key:k of acme, <nil>
	// <nil> <nil>
	// json: cannot unmarshal string into Go struct field Cancelled.refund of type domain.Credits
}
