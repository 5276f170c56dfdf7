package httpapi

import (
	"reflect"
	"testing"
	"time"
)

func TestTimesInQueries(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"2026-03-01":                           "2026-03-01T00:00:00.000Z",
		"2026-03-01T10:00:00Z":                 "2026-03-01T10:00:00.000Z",
		"2026-03-01T10:00:00.123Z":             "2026-03-01T10:00:00.123Z",
		"2026-03-01T10:00:00%2B02:00":          "2026-03-01T08:00:00.000Z",
		"2026-03-01T10:00:00+02:00":            "2026-03-01T08:00:00.000Z", // the "+" arrives as a blank
		"2026-03-01T10:00:00.5+0200":           "2026-03-01T08:00:00.500Z",
		"2026-03-01T10:00:00-02:30":            "2026-03-01T12:30:00.000Z",
		"2026-03-01T10:00:00":                  "2026-03-01T10:00:00.000Z",
		"2026-03-01T10:00Z":                    "2026-03-01T10:00:00.000Z",
		"":                                     "absent",
		"yesterday":                            "refused",
		"2026-02-30":                           "refused",
		"1767225600":                           "refused",
		"2026-03-01%00":                        "refused",
		"%FF":                                  "refused",
		"2026-03-01T10:00:00Z'%20OR%20'1'='1'": "refused",
	} {
		var p problems
		at := parseQuery("since="+raw, &p).time("since")
		got := "absent"
		switch {
		case p.err() != nil:
			got = "refused"
		case at != nil:
			got = at.Format(timestampLayout)
			if at.Location() != time.UTC {
				t.Errorf("%s: not in UTC", raw)
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func TestNumbersInQueries(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string][]string{
		"limit=1": nil, "limit=100": nil, "limit=": nil, "": nil, "limit=7&limit=x": nil, "other=%00": nil,
		"limit=0":                       {"limit: must be a whole number from 1 to 100"},
		"limit=101":                     {"limit: must be a whole number from 1 to 100"},
		"limit=-1":                      {"limit: must be a whole number from 1 to 100"},
		"limit=x":                       {"limit: must be a whole number from 1 to 100"},
		"limit=1.5":                     {"limit: must be a whole number from 1 to 100"},
		"limit=%zz":                     {"query: must be well formed"},
		"limit=1;x=":                    {"query: must be well formed"},
		"limit=99999999999999999999999": {"limit: must be a whole number from 1 to 100"},
	} {
		var p problems
		parseQuery(raw, &p).integer("limit", 20, 1, 100)
		if got := details(t, p.err()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", raw, got, want)
		}
	}
}
