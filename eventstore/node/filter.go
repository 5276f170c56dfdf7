package node

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/dlclark/regexp2/v2"

	"humanqa/eventstore/node/store"
)

const (
	// defaultSearchWindow is the number of events that a filter without a window
	// searches between checkpoints: the original's read batch.
	defaultSearchWindow = 32
	// maxExpression bounds a regular expression, and with it the depth of its parts.
	maxExpression = 8 << 10
	// matchTime bounds the search of one name. An expression of .NET backtracks, so it may
	// need longer than any reader would wait.
	matchTime = time.Second
)

// filter selects events of $all by stream name or type. The nil filter lets
// everything pass.
type filter struct {
	byType   bool
	prefixes []string
	regex    *regexp2.Regexp
	// interval is the number of events considered between two checkpoints.
	interval uint64
}

func newFilter(o *streams.ReadReq_Options_FilterOptions) (*filter, error) {
	if o == nil {
		return nil, nil
	}
	f := &filter{}
	var expression *streams.ReadReq_Options_FilterOptions_Expression
	switch by := o.GetFilter().(type) {
	case *streams.ReadReq_Options_FilterOptions_EventType:
		f.byType, expression = true, by.EventType
	case *streams.ReadReq_Options_FilterOptions_StreamIdentifier:
		expression = by.StreamIdentifier
	default:
		return nil, invalid("a filter needs a stream identifier or an event type")
	}
	switch pattern := expression.GetRegex(); {
	case len(pattern) > maxExpression:
		return nil, invalid(fmt.Sprintf("the filter's regular expression is longer than %d bytes", maxExpression))
	case pattern != "":
		regex, err := regexp2.Compile(pattern)
		if err != nil {
			return nil, invalid("the filter's regular expression: " + err.Error())
		}
		regex.MatchTimeout = matchTime
		f.regex = regex
	case len(expression.GetPrefix()) > 0:
		f.prefixes = expression.GetPrefix()
	default:
		return nil, invalid("a filter needs a regular expression or prefixes")
	}
	window := uint64(defaultSearchWindow)
	if size, ok := o.GetWindow().(*streams.ReadReq_Options_FilterOptions_Max); ok {
		if size.Max == 0 {
			return nil, invalid("the search window must be positive")
		}
		window = uint64(size.Max)
	}
	f.interval = window * uint64(o.GetCheckpointIntervalMultiplier())
	return f, nil
}

// passes fails if the search takes too long, and between two of them when the call has ended.
func (f *filter) passes(ctx context.Context, r *store.Record) (bool, error) {
	if f == nil {
		return true, nil
	}
	subject := r.Stream
	if f.byType {
		subject = r.Type
	}
	if f.regex == nil {
		return slices.ContainsFunc(f.prefixes, func(prefix string) bool { return strings.HasPrefix(subject, prefix) }), nil
	}
	passes, err := f.regex.MatchString(subject)
	if err != nil {
		return false, invalid(fmt.Sprintf("the filter's regular expression needs too much time or memory for the event at %d: %s",
			r.Position, f.regex))
	}
	return passes, ctx.Err()
}
