package eventstore

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"humanqa/internal/testing/must"
)

func TestALogThatTakesEventsSoonIsAskedAgain(t *testing.T) {
	t.Parallel()
	refused := func(later time.Duration) error {
		st, err := status.New(codes.ResourceExhausted, "not now").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(later)})
		must.NoError(t, err)
		return st.Err()
	}
	for want, err := range map[errorClass]error{
		classLater: refused(20 * time.Millisecond),
		classFull:  refused(time.Second),
		classFinal: status.Error(codes.ResourceExhausted, "grpc: received message larger than max"),
	} {
		if got := classify(err); got != want {
			t.Errorf("%v: got %d, want %d", err, got, want)
		}
	}
}
