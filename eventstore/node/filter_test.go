package node_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"humanqa/internal/testing/must"
)

// filtered reads $all by a regular expression on types, and lists the types of what came.
func (r *raw) filtered(expression string) (types []string, err error) {
	r.Helper()
	got, err := r.reads(&streams.ReadReq_Options{
		StreamOption: &streams.ReadReq_Options_All{All: &streams.ReadReq_Options_AllOptions{AllOption: &streams.ReadReq_Options_AllOptions_Start{}}},
		CountOption:  &streams.ReadReq_Options_Count{Count: 1000},
		FilterOption: &streams.ReadReq_Options_Filter{Filter: &streams.ReadReq_Options_FilterOptions{
			Filter: &streams.ReadReq_Options_FilterOptions_EventType{EventType: &streams.ReadReq_Options_FilterOptions_Expression{Regex: expression}},
		}},
	}, nil)
	for _, resp := range got {
		types = append(types, resp.GetEvent().GetEvent().GetMetadata()["type"])
	}
	return types, err
}

func (r *raw) writeTypes(types ...string) {
	r.Helper()
	var events []esdb.EventData
	for _, kind := range types {
		e := event()
		e.EventType = kind
		events = append(events, e)
	}
	_, err := r.client.AppendToStream(r.Context(), "types", esdb.AppendToStreamOptions{ExpectedRevision: esdb.Any{}}, events...)
	must.NoError(r, err)
}

func TestAFilterTakesExpressionsOfNET(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	r.writeTypes("häuser", "haus 7", "haus\u00a0٧", "xyz", "aeiou", "Привет", "order-placed", "order-taken")
	for expression, want := range map[string][]string{
		`^\w+$`:                 {"häuser", "xyz", "aeiou", "Привет"},
		`^haus\s\d$`:            {"haus 7", "haus\u00a0٧"},
		`^[a-z-[aeiou]]+$`:      {"xyz"},
		`^order-(?!placed)`:     {"order-taken"},
		`(?<=order-)placed`:     {"order-placed"},
		`^\p{Cyrillic}+$`:       {"Привет"},
		`^(?<first>[ae])\w+$`:   {"aeiou"},
		`^(?i)ORDER-PLACED\r?$`: {"order-placed"},
		`\bä`:                   nil, // it stands within a word
	} {
		if got, err := r.filtered(expression); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v, want %q", expression, got, err, want)
		}
	}
}

func TestAFilterThatIsNoExpressionSaysWhy(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	for expression, why := range map[string]string{
		`job-(`:                           "missing closing ) in `job-(`",
		`[z-a]`:                           "[z-a] range in reverse order in `[z-a]`",
		`\p{IsCyrillic}`:                  "unknown unicode category, script, or property 'IsCyrillic'",
		strings.Repeat("(", 4000) + `job`: "missing closing )",
		strings.Repeat("x", 8<<10+1):      "longer than 8192 bytes",
	} {
		_, err := r.filtered(expression)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), why) {
			t.Errorf("%.20s: got %v", expression, err)
		}
	}
	_, err := r.filtered(strings.Repeat("(", 4000) + "job" + strings.Repeat(")", 4000))
	must.NoError(t, err)
}

// The search for `^(a+)+$` doubles with each letter.
func TestAFilterThatSearchesForTooLongEndsItsOwnReadOnly(t *testing.T) {
	t.Parallel()
	r := rawNode(t)
	r.writeTypes("fast", strings.Repeat("a", 60)+"!", "last")
	slow := make(chan error)
	go func() {
		_, err := r.filtered(`^(a+)+$`)
		slow <- err
	}()
	r.writeTypes("meanwhile")
	if got, err := r.filtered(`^(last|meanwhile)$`); err != nil || !slices.Equal(got, []string{"last", "meanwhile"}) {
		t.Errorf("beside a slow filter: got %q, %v", got, err)
	}
	err := <-slow
	if status.Code(err) != codes.InvalidArgument || !strings.HasSuffix(err.Error(), "for the event at 2: ^(a+)+$") {
		t.Errorf("got %v", err)
	}
}
