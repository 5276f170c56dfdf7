package humanqa_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/signature"
	"humanqa/internal/testing/must"
)

// service answers requests one after the other, without a network.
type service struct {
	answers []answer
	asked   []*http.Request
}

type answer struct {
	status int
	body   string
	header http.Header
	lost   bool // there is no answer
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r)
	if len(s.asked) > len(s.answers) {
		return nil, fmt.Errorf("it asks once more: %s", r.URL)
	}
	next := s.answers[len(s.asked)-1]
	if next.lost {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	for name, values := range next.header {
		w.Header()[name] = values
	}
	w.WriteHeader(next.status)
	_, err := w.WriteString(next.body)
	return w.Result(), err
}

func (s *service) client() *humanqa.Client {
	return humanqa.Within("https://qa.example.com", s, "test")
}

const (
	waiting = `{"jobId":"j","status":"pending","isFinal":false}`
	ended   = `{"jobId":"j","status":"completed","isFinal":true,"result":{"overallStatus":"pass","summary":"Works."}}`
	busy    = `{"error":"the service restarts","code":"UNAVAILABLE","hint":"ask again","requestId":"r1"}`
)

func TestAWaitOfTheClientOutlastsAServiceThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // its hours pass at once
		tag := http.Header{"Etag": {`"1"`}}
		s := &service{answers: []answer{{status: 200, body: waiting, header: tag}, {status: http.StatusNotModified, header: tag}}}
		for range 100 {
			s.answers = append(s.answers, answer{lost: true}, answer{status: 503, body: busy, header: http.Header{"Retry-After": {"1"}}})
		}
		s.answers = append(s.answers, answer{status: 200, body: ended})
		var seen []humanqa.HostedStatusStatus
		now, err := s.client().Wait(t.Context(), "j", func(now humanqa.HostedStatus) { seen = append(seen, now.Status) })
		if err != nil || now.Result == nil || now.Result.Summary != "Works." {
			t.Errorf("it ends with %+v, %v", now, err)
		}
		if want := []humanqa.HostedStatusStatus{"pending", "completed"}; !slices.Equal(seen, want) {
			t.Errorf("it saw %v", seen)
		}
		if held := s.asked[1]; held.URL.Query().Get("wait") != "25" || held.Header.Get("If-None-Match") != `"1"` {
			t.Errorf("the second look is %s under %q", held.URL, held.Header.Get("If-None-Match"))
		}
	})
}

func TestAWaitOfTheClientEndsWithARefusalOrItsContext(t *testing.T) {
	t.Parallel()
	s := &service{answers: []answer{{status: 404, body: `{"error":"job not found","code":"NOT_FOUND","requestId":"r"}`}}}
	if _, err := s.client().Wait(t.Context(), "j", nil); !humanqa.Refused(err, http.StatusNotFound) {
		t.Errorf("of a job that is not there: %v", err)
	}
	ctx, end := context.WithCancel(t.Context())
	s = &service{answers: []answer{{status: 200, body: waiting}}}
	if _, err := s.client().Wait(ctx, "j", func(humanqa.HostedStatus) { end() }); !errors.Is(err, context.Canceled) {
		t.Errorf("of a context that ended: %v", err)
	}
}

func TestAListIsWalkedByCursorsAndOffsets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		asked   []string
	}{
		"by nextCursor": {
			[]string{`{"jobs":["a","b"],"nextCursor":"c&1","total":3,"offset":0}`, `{"jobs":["c"],"nextCursor":null,"total":3,"offset":0}`},
			[]string{"limit=2", "cursor=c%261&limit=2"},
		},
		"by next":               {[]string{`{"jobs":["a"],"next":"5"}`, `{"jobs":["b","c"],"next":null}`}, []string{"limit=2", "after=5&limit=2"}},
		"by next with hasMore":  {[]string{`{"jobs":["a","b","c"],"next":"9","hasMore":false}`}, []string{"limit=2"}},
		"by offset":             {[]string{`{"jobs":["a","b"],"total":3,"offset":0}`, `{"jobs":["c"],"total":3,"offset":2}`}, []string{"limit=2", "limit=2&offset=2"}},
		"that is whole at once": {[]string{`{"jobs":["a","b","c"]}`}, []string{"limit=2"}},
	} {
		s := &service{}
		for _, body := range c.answers {
			s.answers = append(s.answers, answer{status: 200, body: body})
		}
		var got []string
		for job, err := range humanqa.List[string](t.Context(), s.client(), "/v1/jobs?limit=2", "jobs") {
			must.NoError(t, err)
			got = append(got, job)
		}
		var asked []string
		for _, r := range s.asked {
			asked = append(asked, r.URL.RawQuery)
		}
		if !slices.Equal(got, []string{"a", "b", "c"}) || !slices.Equal(asked, c.asked) {
			t.Errorf("%s: %v by %q", name, got, asked)
		}
	}
	s := &service{answers: []answer{{status: 200, body: `{"jobs":["a"],"next":"5"}`}, {status: 403, body: `{"error":"no","code":"FORBIDDEN"}`}}}
	var last error
	for _, err := range humanqa.List[string](t.Context(), s.client(), "/v1/jobs", "jobs") {
		last = err
	}
	if !humanqa.Refused(last, http.StatusForbidden) {
		t.Errorf("a list that breaks off ends with %v", last)
	}
}

func TestACallIsSentAgainOnlyUnderItsIdempotencyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answers := []answer{{status: 503, body: busy}, {lost: true}, {status: 201, body: `{"jobId":"j"}`}}
		s := &service{answers: answers}
		key := humanqa.NewKey()
		var job humanqa.SubmittedJob
		_, err := s.client().Do(t.Context(), humanqa.Call{Method: http.MethodPost, Path: "/v1/jobs", Body: humanqa.NewJob{}, Key: key}, &job)
		if err != nil || job.JobID != "j" || len(s.asked) != 3 || s.asked[2].Header.Get("Idempotency-Key") != key {
			t.Errorf("%v, %v after %d requests", job, err, len(s.asked))
		}
		s = &service{answers: answers}
		_, err = s.client().Do(t.Context(), humanqa.Call{Method: http.MethodPost, Path: "/v1/jobs"}, nil)
		refused, ok := errors.AsType[*humanqa.Error](err)
		if !ok || len(s.asked) != 1 || refused.Hint != "ask again" || refused.RequestID != "r1" || refused.Code != "UNAVAILABLE" {
			t.Errorf("without a key it ends with %v after %d requests", err, len(s.asked))
		}
	})
}

func TestTheClientVerifiesAWebhookThroughARotation(t *testing.T) {
	t.Parallel()
	const before, now = "the old secret of thirty-two chars", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	body := []byte(`{"event":"job.completed"}`)
	sent := time.Now()
	h := http.Header{}
	for _, one := range signature.Headers("job.completed", "msg_1", "", sent, signature.Pair{
		Service:  signature.Of([]byte(before), body),
		Standard: signature.Standard([]byte(now), "msg_1", sent, body) + " " + signature.Standard([]byte(before), "msg_1", sent, body),
	}) {
		h.Set(one.Name, one.Value)
	}
	for secret, want := range map[string]error{before: nil, now: nil, "a third one": humanqa.ErrSignature} {
		if err := humanqa.Verify(secret, h, body); !errors.Is(err, want) {
			t.Errorf("with %q: %v", secret, err)
		}
	}
	if err := humanqa.Verify(now, h, append(body, ' ')); !errors.Is(err, humanqa.ErrSignature) {
		t.Errorf("of another body: %v", err)
	}
}

// A nil pointer leaves a field out, and false, 0 and an empty list are sent.
func TestARequestSaysFalseAndEmptyAsWellAsNothing(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(humanqa.NewHostedTest{URL: "https://example.com/", SubscribedWebhookEvents: new(humanqa.EventNames{}), Feature: new("")})
	must.NoError(t, err)
	if want := `{"feature":"","subscribedWebhookEvents":[],"url":"https://example.com/"}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
