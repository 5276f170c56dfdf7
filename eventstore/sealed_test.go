package eventstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
	"github.com/google/uuid"

	"humanqa/domain"
	"humanqa/domain/checker"
	"humanqa/domain/job"
	"humanqa/eventstore/freetext"
	"humanqa/internal/testing/must"
)

// filled sets every string of an event, at any depth, to a text that is hard on JSON.
func filled(v reflect.Value, n *int) {
	switch v.Kind() {
	case reflect.String:
		*n++
		v.SetString(fmt.Sprintf("canary \"%d\" \\u005bsealed] \\ <é>\n.", *n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			filled(v.Field(i), n)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
			for i := range v.Len() {
				filled(v.Index(i), n)
			}
		}
	default: // numbers and flags stay
	}
}

// textMark is that of package freetext.
const textMark = `"\u005bsealed]"`

func storedBy(t *testing.T, c *Client, stream string, e domain.Event) []byte {
	t.Helper()
	out, err := c.proposals(t.Context(), stream, []domain.NewEvent{{ID: uuid.New(), Event: e, Meta: domain.Metadata{AccountID: "acc"}}})
	must.NoError(t, err)
	return out[0].Data
}

func decoded(t *testing.T, c *Client, stream string, like domain.Event, data []byte) (domain.Event, error) {
	t.Helper()
	r, err := c.whole(t.Context(), &esdb.RecordedEvent{StreamID: stream, EventType: like.EventType(), Data: data, UserMetadata: []byte(`{}`)})
	if err != nil {
		return nil, err
	}
	recorded, err := r.Decode()
	return recorded.Event, err
}

// Every event with texts comes back as it was, holds none in the clear, and reads as erased
// once its key is gone.
func TestTextsOfASubjectAreSealedAndComeBack(t *testing.T) {
	t.Parallel()
	for _, eventType := range onceClear {
		t.Run(eventType, func(t *testing.T) {
			t.Parallel()
			seal := &mirror{}
			c, stream := &Client{sealer: seal}, "job-1"
			e, n := registry[eventType].New(), 0
			filled(reflect.ValueOf(e).Elem(), &n)
			plain, err := domain.EncodeJSON(e)
			must.NoError(t, err)
			data := storedBy(t, c, stream, e)
			if !json.Valid(data) || freetext.Sealed(data) == nil {
				t.Fatalf("stored is %s", data)
			}
			EachText(eventType, plain, func(quoted []byte) {
				if bytes.Contains(data, bytes.Trim(quoted, `"`)) {
					t.Errorf("the log shows %s", quoted)
				}
			})
			back, err := decoded(t, c, stream, e, data)
			if err != nil || !reflect.DeepEqual(back, e) {
				t.Errorf("it comes back as %+v, %v", back, err)
			}
			// The account can hold its texts against what is signed.
			r, err := c.whole(t.Context(), &esdb.RecordedEvent{StreamID: stream, EventType: eventType, Data: data, UserMetadata: []byte(`{}`)})
			must.NoError(t, err)
			shown, salted, _ := Proved(r, nil)
			sum := sha256.Sum256(salted)
			if !bytes.Equal(shown, data) || !bytes.Contains(data, []byte(`"textsSum":"`+base64.RawURLEncoding.EncodeToString(sum[:])+`"`)) {
				t.Errorf("the texts %s are not those of the sum in %s", salted, data)
			}
			seal.fails = domain.ErrShredded
			gone, err := decoded(t, c, stream, e, data)
			must.NoError(t, err)
			erased, err := domain.EncodeJSON(gone)
			must.NoError(t, err)
			want := registry[eventType].New()
			must.NoError(t, json.Unmarshal(EraseTexts(eventType, plain), want))
			if !reflect.DeepEqual(gone, want) {
				t.Errorf("erased it reads %s", erased)
			}
			EachText(eventType, erased, func(quoted []byte) {
				if string(quoted) != `"[erased]"` {
					t.Errorf("left is %s", quoted)
				}
			})
			// Of a lost key the reader goes on, and can tell.
			seal.fails = domain.ErrKeyLost
			r, err = c.whole(t.Context(), &esdb.RecordedEvent{StreamID: stream, EventType: eventType, Data: data, UserMetadata: []byte(`{}`)})
			must.NoError(t, err)
			if has := bytes.Contains(erased, []byte("[erased]")); TextsClosed(r) != has || bytes.Contains(r.Whole(), []byte("[erased]")) {
				t.Errorf("without its key it reads %s", r.Whole())
			}
			// What is not erased is as it was: the order of the marks is the order of the texts.
			if again := EraseTexts(eventType, erased); !bytes.Equal(again, erased) {
				t.Errorf("erased twice it reads %s", again)
			}
		})
	}
}

func TestTextsOfAnotherStreamDoNotOpen(t *testing.T) {
	t.Parallel()
	seal := &mirror{}
	c := &Client{sealer: seal}
	e := &job.Created{Submission: job.Submission{AccountID: "acc-of-the-job", Title: "Checkout"}}
	data := storedBy(t, c, "job-1", e)
	if seal.accounts[0] != "acc-of-the-job" {
		t.Errorf("the key is of account %q", seal.accounts[0])
	}
	var damaged *DecodeError
	if _, err := decoded(t, c, "job-2", e, data); !errors.As(err, &damaged) {
		t.Errorf("in another stream: %v", err)
	}
	for name, broken := range map[string]string{
		"a mark is missing":   strings.Replace(string(data), textMark, `"x"`, 1),
		"a mark too many":     strings.Replace(string(data), `"items":null`, `"items":null,"feature":`+textMark, 1),
		"the texts are short": strings.Replace(string(data), `{"texts":"s1.`, `{"texts":"s1.A`, 1),
	} {
		if broken == string(data) {
			t.Fatalf("%s: nothing changed in %s", name, data)
		}
		if _, err := decoded(t, c, "job-1", e, []byte(broken)); !errors.As(err, &damaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	away := errors.New("the database is away")
	seal.fails = away
	if _, err := decoded(t, c, "job-1", e, data); !errors.Is(err, away) || errors.As(err, &damaged) {
		t.Errorf("while the key cannot be read: %v", err)
	}
	if _, err := c.proposals(t.Context(), "job-1", []domain.NewEvent{{ID: uuid.New(), Event: e}}); !domain.IsKind(err, domain.KindUnavailable) {
		t.Errorf("while it cannot be sealed: %v", err)
	}
	seal.fails = domain.ErrShredded
	if _, err := c.proposals(t.Context(), "job-1", []domain.NewEvent{{ID: uuid.New(), Event: e}}); !domain.IsKind(err, domain.KindConflict) {
		t.Errorf("once the job is erased: %v", err)
	}
}

func TestEventsThatWereWrittenInTheClearStayReadable(t *testing.T) {
	t.Parallel()
	e := &checker.Created{Name: "Ann \\u005bsealed]", Hash: "h"}
	plain, err := domain.EncodeJSON(e)
	must.NoError(t, err)
	for name, fails := range map[string]error{"with a key": nil, "without one": domain.ErrShredded} {
		back, err := decoded(t, &Client{sealer: &mirror{fails: fails}}, "checker-1", e, plain)
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%s: %+v, %v", name, back, err)
		}
	}
	if got := storedBy(t, &Client{}, "checker-1", e); !bytes.Equal(got, plain) {
		t.Errorf("without a sealer stored is %s", got)
	}
	back, err := decoded(t, &Client{}, "checker-1", e, storedBy(t, &Client{sealer: &mirror{}}, "checker-1", e))
	if err != nil || back.(*checker.Created).Name != domain.HiddenText {
		t.Errorf("a reader without a sealer sees %+v, %v", back, err)
	}
}

// onceClear are the types whose texts were once written in the clear. A type that is newer than
// the sealing needs no second version.
var onceClear = []string{
	"checker.created", "checker.profiled", "job.ai_report_ready", "job.checklist_written",
	"job.commit_status_requested", "job.completed", "job.created", "job.failed", "job.finding_added",
	"job.finding_edited", "job.item_checked", "job.moment_marked", "job.question_answered",
	"job.question_asked", "job.rated", "job.recording_attached", "job.untestable_reported",
}

// A binary from before texts were sealed would take the marks for texts: it finds a version
// that it does not know.
func TestTypesThatWereInTheClearHaveAVersionOfTheirOwn(t *testing.T) {
	for _, eventType := range onceClear {
		if Version(eventType) < 2 || registry[eventType].Sealed == nil {
			t.Errorf("%s has version %d", eventType, Version(eventType))
		}
	}
}

// bare are the strings of events of jobs and checkers that are no free texts: ids, keys,
// codes, times, hashes, and an operator's order with its reason. They stay when their
// subject is erased.
var bare = map[string]bool{
	"accountId": true, "accounts": true, "answerId": true, "answerUntil": true, "at": true, "batchId": true, "before": true, "by": true,
	"checker": true, "checkerId": true, "commit": true, "contentType": true, "createdAt": true, "decision": true, "disputeId": true, "dueAt": true, "failOn": true,
	"findingId": true, "generatedBy": true, "hash": true, "id": true, "itemId": true, "jobId": true,
	"jobs": true, "key": true, "kind": true, "loopId": true, "origin": true, "overallStatus": true,
	"parentId": true, "personId": true, "prefix": true, "prepared": true, "projectId": true, "provider": true,
	"questionId": true, "reason": true, "reportId": true, "retestJobId": true, "sessionId": true, "setting": true, "settingOf": true,
	"severity": true, "source": true, "startedAt": true, "state": true, "status": true, "type": true,
	"typeEcho": true, "until": true, "verdict": true,
}

// A string that a new field brings is sealed, or named here as none: else an erasure would
// leave it in the log.
func TestEachStringOfASubjectIsSealedOrNoText(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for eventType, spec := range registry {
		if !strings.HasPrefix(eventType, "job.") && !strings.HasPrefix(eventType, "checker.") {
			continue
		}
		e, n := spec.New(), 0
		filled(reflect.ValueOf(e).Elem(), &n)
		plain, err := domain.EncodeJSON(e)
		must.NoError(t, err)
		texts := map[string]bool{}
		EachText(eventType, plain, func(quoted []byte) {
			var text string
			must.NoError(t, json.Unmarshal(quoted, &text))
			texts[text] = true
		})
		var all any
		must.NoError(t, json.Unmarshal(plain, &all))
		eachString(all, "", func(name, value string) {
			if texts[value] {
				return
			}
			if found[name] = true; !bare[name] {
				t.Errorf("%q of %s: seal it by its tag and erase it in the read models, or name it as no text", name, eventType)
			}
		})
	}
	for name := range bare {
		if !found[name] {
			t.Errorf("no event has %q any more", name)
		}
	}
}

// eachString tells the strings of a decoded JSON value, by the field that holds them.
func eachString(v any, name string, tell func(name, value string)) {
	switch v := v.(type) {
	case string:
		tell(name, v)
	case []any:
		for _, one := range v {
			eachString(one, name, tell)
		}
	case map[string]any:
		for name, one := range v {
			eachString(one, name, tell)
		}
	}
}
