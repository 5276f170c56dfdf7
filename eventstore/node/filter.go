package node

import (
	"regexp"
	"slices"
	"strings"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"

	"humanqa/eventstore/node/store"
)

// defaultSearchWindow is the number of events that a filter without a window
// searches between checkpoints: the original's read batch.
const defaultSearchWindow = 32

// filter selects events of $all by stream name or type. The nil filter lets
// everything pass.
type filter struct {
	byType   bool
	prefixes []string
	regex    *regexp.Regexp
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
	case pattern != "":
		regex, err := regexp.Compile(pattern)
		if err != nil {
			return nil, invalid("the filter's regular expression: " + err.Error())
		}
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

func (f *filter) passes(r *store.Record) bool {
	if f == nil {
		return true
	}
	subject := r.Stream
	if f.byType {
		subject = r.Type
	}
	if f.regex != nil {
		return f.regex.MatchString(subject)
	}
	return slices.ContainsFunc(f.prefixes, func(prefix string) bool { return strings.HasPrefix(subject, prefix) })
}
