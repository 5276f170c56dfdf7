package queue

import (
	"time"

	"humanqa/domain/announce"
	"humanqa/internal/signature"
	"humanqa/webhooks"
)

// Delivery is a delivery that this process sends, with the endpoint as it was at that
// moment.
type Delivery struct {
	ID             string `db:"id"`
	ProjectID      string `db:"project_id"`
	Event          string `db:"event"`
	Body           []byte `db:"body"`
	RequestID      string `db:"request_id"` // of the request that led to the event; empty: none is known
	Trace          string `db:"trace"`      // its traceparent; empty: none
	Attempt        int    `db:"attempt"`    // its number, from one: the settlement checks it
	Failures       int    `db:"failures"`
	AccountID      string `db:"account_id"`
	URL            string `db:"url"`
	Secret         string `db:"secret"`
	PreviousSecret string `db:"previous_secret"` // empty outside a rotation's overlap
	NewSecret      string `db:"new_secret"`      // as in endpoint
	LastStatus     int    `db:"last_status"`     // of the attempt before; 0: none
	Resets         int64  `db:"generation"`
	webhooks.OwnHeaders
}

// Answer is the result of one request. Err is empty exactly on a 2xx.
type Answer struct {
	At       time.Time
	Took     time.Duration
	Status   int // 0: none
	Err      string
	Response string
	Slow     bool // it used up its time
	Signed   signature.Pair
}

// Result is what one attempt means for its delivery.
type Result string

const (
	Delivered Result = "delivered"
	Retry     Result = "retry"     // one failure more, due again after a while
	Exhausted Result = "exhausted" // the last failure: the endpoint is disabled
	Postponed Result = "postponed" // no fault of the endpoint; due again after a while
	// Undelivered is the end of a test event, which is sent once and disables
	// nothing.
	Undelivered Result = "undelivered"
)

// Outcome is a finished attempt on its way into the rows.
type Outcome struct {
	Delivery
	Answer
	Result Result
	Wait   time.Duration
	Unsent bool // nothing left this process: no attempt to log
}

// The errors of attempts that say nothing about the endpoint.
const (
	interrupted = "interrupted: "
	lost        = "the outcome is unknown: the sender went away"
)

// sealedSecret is the error of deliveries that could not be signed, and of
// their endpoint.
const sealedSecret = "the signing secret cannot be opened"

// unsealWait postpones the deliveries of an endpoint whose secret cannot be opened. None
// of them is sent before the secret can be opened.
const unsealWait = time.Minute

// Answered applies the delivery rules to an answer (specification, "Delivery rules";
// decisions, "Retries").
func (d Delivery) Answered(a Answer, retries []time.Duration) Outcome {
	o := Outcome{Delivery: d, Answer: a}
	switch {
	case a.Err == "":
		o.Result = Delivered
	case d.Event == announce.TestName:
		o.Result = Undelivered
	case d.Failures >= len(retries):
		o.Result = Exhausted
	default:
		o.Result, o.Wait = Retry, retries[d.Failures]
	}
	return o
}

// Interrupted is the outcome of a request that the sender itself ended.
func (d Delivery) Interrupted(a Answer, why error) Outcome {
	a.Err, a.Slow = interrupted+why.Error(), false
	return Outcome{Delivery: d, Answer: a, Result: Postponed}
}

// Unsigned is the outcome of a delivery whose secret cannot be opened.
func (d Delivery) Unsigned() Outcome {
	return Outcome{
		Delivery: d, Answer: Answer{At: time.Now(), Err: sealedSecret}, Result: Postponed, Wait: unsealWait, Unsent: true,
	}
}
