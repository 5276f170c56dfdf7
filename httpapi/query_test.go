package httpapi

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"humanqa/domain"
	"humanqa/httpapi/wire"
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
		var p wire.Problems
		at := wire.ParseQuery("since="+raw, &p).Time("since")
		got := "absent"
		switch {
		case p.Err() != nil:
			got = "refused"
		case at != nil:
			got = at.Format(wire.TimestampLayout)
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
		var p wire.Problems
		wire.ParseQuery(raw, &p).Integer("limit", 20, 1, 100)
		if got := detailsOf(t, p.Err()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", raw, got, want)
		}
	}
}

// A parameter that nobody asks for changes nothing, and is told; asOf on a read
// that shows no state of the past is refused.
func TestAParameterThatIsNotKnownIsNeverSilence(t *testing.T) {
	t.Parallel()
	s := shared(t)
	_, key := s.account(10)
	project := s.project(key, `{"name":"p"}`)
	for target, want := range map[string]string{
		"/v1/jobs?limit=5&since=2026-01-01":           "",
		"/v1/jobs?limt=5":                             `"limt" is not known and was ignored; did you mean limit?`,
		"/v1/jobs?x=1&limt=5&x=2":                     `"limt" is not known and was ignored; did you mean limit?, "x" is not known and was ignored`,
		"/v1/credits?asof=2026-01-01":                 `"asof" is not known and was ignored; did you mean asOf?`,
		"/v1/pricing?a%0d%0ab%c3%a9=1":                `"a\r\nb\u00e9" is not known and was ignored`,
		"/v1/projects/" + project + "?status=pending": `"status" is not known and was ignored`,
		"/v1/exports/jobs?form=csv":                   `"form" is not known and was ignored; did you mean format?`,
	} {
		r := s.call(key, "GET", target, "")
		if got := r.Header().Get("X-Warnings"); r.Code != http.StatusOK || got != want {
			t.Errorf("%s: got %d, %q, want %q", target, r.Code, got, want)
		}
	}
	equal(t, s.call(key, "POST", "/v1/jobs?dry=1", aJob).Header().Get("X-Warnings"), `"dry" is not known and was ignored`)
	equal(t, s.call(s.checker(), "GET", "/v1/checker/queue?limits=1", "").Header().Get("X-Warnings"), `"limits" is not known and was ignored; did you mean limit?`)

	for _, row := range routes {
		if row.Method != http.MethodGet || row.Past || row.Audience == wire.Checkers || row.Audience == wire.Hooks {
			continue
		}
		r := s.call(s.keyFor(row.Audience, key, ""), row.Method, at(row.Pattern, project)+"?asOf=2026-01-01", "")
		equal(t, r.paths(), []string{"asOf"})
		if body := r.Body.String(); !strings.Contains(body, "GET /v1/jobs, /v1/jobs/bulk/{batchId}, ") {
			t.Errorf("%s does not say what takes asOf: %s", row.Pattern, body)
		}
	}
}

func detailsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var refused *domain.Error
	if !errors.As(err, &refused) || refused.Kind != domain.KindInvalid {
		t.Fatalf("got %v, want an invalid request", err)
	}
	list, _ := refused.Extras["details"].([]domain.Detail)
	var out []string
	for _, d := range list {
		out = append(out, d.Path+": "+d.Message)
	}
	return out
}
