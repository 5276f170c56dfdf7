package announce_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/account"
	"humanqa/domain/announce"
	"humanqa/domain/credits"
	"humanqa/domain/job"
	"humanqa/domain/loop"
	"humanqa/domain/project"
	"humanqa/domain/session"
	"humanqa/internal/testing/must"
)

// fill gives every field a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.UnixMilli(int64(*n) * 1e9).UTC()))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	}
}

// texts gives the values of fill in the fields of an event that are sealed.
func texts(t *testing.T, e domain.Event) (found []string) {
	t.Helper()
	data, err := json.Marshal(e)
	must.NoError(t, err)
	var object any
	must.NoError(t, json.Unmarshal(data, &object))
	sealed := domain.SealedFields(e)
	var collect func(name string, v any)
	collect = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, field := range v {
				collect(name, field)
			}
		case []any:
			for _, element := range v {
				collect(name, element)
			}
		case string:
			if sealed[name] != "" && strings.HasPrefix(v, "text ") {
				found = append(found, v)
			}
		}
	}
	collect("", object)
	return found
}

// Whatever an announcement says is still there, and what it does not say is not.
func TestWhatIsToldIsAnnouncedAlike(t *testing.T) {
	t.Parallel()
	kinds := 0
	for _, spec := range slices.Concat(job.Specs(), loop.Specs(), session.Specs(), project.Specs(), credits.Specs(), account.Specs()) {
		e, n := spec.New(), 0
		fill(reflect.ValueOf(e).Elem(), &n)
		switch e := e.(type) {
		case *job.Completed: // both ways through the counts
			e.Items[0].Status, e.Items[0].Severity = job.ItemFail, job.Critical
			e.Items[1].Status, e.Items[1].Severity = job.ItemFail, job.Minor
		case *credits.Debited:
			*e.LowBelow, e.Amount, e.BalanceAfter = 10, 5, 9
		}
		r := domain.Recorded{ID: uuid.New(), Stream: domain.JobStream("j"), Type: e.EventType(), Event: e}
		about := announce.Enrichment{Submission: job.Submission{AccountID: "acc", ProjectID: "p", Title: "title", URL: "https://app.example"}}
		want, announced, err := announce.Render("https://qa.example", r, about)
		must.NoError(t, err)
		if announced {
			kinds++
		}
		r.Event = announce.Told(e)
		if announced {
			for _, text := range texts(t, r.Event) {
				if !bytes.Contains(want, []byte(text)) {
					t.Errorf("%s: %q is told, but not announced", r.Type, text)
				}
			}
		}
		if got, _, err := announce.Render("https://qa.example", r, about); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %s, %v\nwant %s", r.Type, got, err, want)
		}
	}
	if kinds != len(announce.Kinds()) {
		t.Errorf("%d kinds of %d", kinds, len(announce.Kinds()))
	}
}
